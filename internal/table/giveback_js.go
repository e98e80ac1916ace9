package table

import "runtime"

// giveBack collects unused memory for later use: WebAssembly returns none to its host.
func giveBack() { runtime.GC() }
