//go:build !js

package table

import "runtime/debug"

// giveBack returns memory that nothing holds to the system.
func giveBack() { debug.FreeOSMemory() }
