// The worker runs the engine, which is Go, and passes messages (messages.js) between it and index.js.
import './wasm_exec.js';
import { imports, bind } from './kernels.js';
import { buffers } from './messages.js';

const node = typeof process === 'object' && process.versions?.node;
const port = node ? process.getBuiltinModule('node:worker_threads').parentPort : globalThis;
const post = (message, transfer) => port.postMessage(message, transfer);
const listen = (heard) => (node ? port.on('message', heard) : port.addEventListener('message', (event) => heard(event.data)));

/** turner returns a function that calls another after one round of the event loop. In browsers a
 * message to oneself makes such a round, and timers would be delayed; node would handle a
 * thousand messages in one round. */
function turner() {
  if (node) return setImmediate;
  const { port1, port2 } = new MessageChannel();
  let next;
  port1.onmessage = () => next();
  return (call) => {
    next = call;
    port2.postMessage(null);
  };
}

async function start({ engine, kernels }) {
  const host = (globalThis.quantmf = {
    reply: (id, error, result) => post({ type: 'reply', id, error, result }, buffers(result)),
    turn: turner(),
    progress: (id, phase, done, epoch, epochs, loss) => post({ type: 'progress', id, phase, done, epoch, epochs, loss }),
  });
  const go = new Go();
  go.importObject.quantmf = imports;
  const instance = await WebAssembly.instantiate(engine, go.importObject);
  if (kernels) bind((await WebAssembly.instantiate(kernels, { env: { memory: instance.exports.mem } })).exports);
  go.run(instance).then(
    () => post({ type: 'died', message: 'the engine ended' }),
    (error) => post({ type: 'died', message: String(error) }),
  );
  post({ type: 'ready', vectors: host.vectors });
  return host;
}

let host;
listen(async (message) => {
  try {
    if (message.type === 'start') host = await start(message);
    else if (message.type === 'call') host.call(message.id, message.name, message.args);
    else if (message.type === 'cancel') host.cancel(message.id);
  } catch (error) {
    post({ type: 'died', message: String(error?.message ?? error) });
  }
});
if (!node) post({ type: 'listening' });
