// Runs a module that was divided: node run.mjs FOLDER-OF-wasm_exec.js FIRST SECOND
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRequire } from 'node:module';

const [folder, first, second] = process.argv.slice(2);
globalThis.require = createRequire(import.meta.url);
globalThis.fs = globalThis.require('fs');
await import(join(folder, 'wasm_exec.js'));
const go = new Go();
const { instance } = await WebAssembly.instantiate(readFileSync(first), go.importObject);
await WebAssembly.instantiate(readFileSync(second), { ...go.importObject, first: instance.exports });
await go.run(instance);
