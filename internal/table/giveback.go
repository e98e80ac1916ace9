//go:build !js

package table

import "runtime/debug"

// giveBack returns unused memory to the system.
func giveBack() { debug.FreeOSMemory() }
