// Runs a program of Go for js/wasm with the kernels, for
//
//	GOOS=js GOARCH=wasm go test -tags wasmsimd -exec "node web/test/exec.mjs" ./internal/kernel
//
// Needs web/dist. QUANTMF_SIMD=0 leaves the kernels out.
import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';

Object.assign(globalThis, { require: createRequire(import.meta.url), fs, path });
globalThis.crypto ??= crypto;
const dist = new URL('../dist/', import.meta.url);
await import(new URL('wasm_exec.js', dist));
const { imports, bind } = await import(new URL('kernels.js', dist));

const go = new Go();
go.argv = process.argv.slice(2);
go.env = { TMPDIR: os.tmpdir(), ...process.env };
go.exit = process.exit;
go.importObject.quantmf = imports;
const { instance } = await WebAssembly.instantiate(fs.readFileSync(process.argv[2]), go.importObject);
if (process.env.QUANTMF_SIMD !== '0') {
  const kernels = await WebAssembly.instantiate(fs.readFileSync(new URL('kernels.wasm', dist)), { env: { memory: instance.exports.mem } });
  bind(kernels.instance.exports);
}
process.on('exit', (code) => {
  if (code === 0 && !go.exited) {
    go._pendingEvent = { id: 0 }; // a deadlock: Go prints its stacks
    go._resume();
  }
});
await go.run(instance);
