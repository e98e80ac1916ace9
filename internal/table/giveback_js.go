package table

import "runtime"

// giveBack makes memory that nothing holds free for what follows: WebAssembly returns none to its host.
func giveBack() { runtime.GC() }
