#!/usr/bin/env bash
set -euo pipefail
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOPATH="$SRC_DIR/go"
mkdir -p "$PREFIX/bin"
go build -trimpath -ldflags "-s -w -X main.released=v$PKG_VERSION" -o "$PREFIX/bin/quantmf" ./cmd/quantmf
