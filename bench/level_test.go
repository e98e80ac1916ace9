//go:build !amd64 || purego

package bench

import "github.com/quantmf/quantmf/internal/cpu"

const level = cpu.Portable
