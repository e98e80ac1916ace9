// The messages between index.js and a worker:
//
//	to the worker    {type: 'start', engine, kernels}   compiled modules; kernels null without SIMD
//	                 {type: 'call', id, name, args}, {type: 'cancel', id}
//	from the worker  {type: 'listening'}                it can be started; in node the thread itself tells
//	                 {type: 'ready', vectors}, {type: 'progress', id, phase, done, epoch, epochs, loss},
//	                 {type: 'reply', id, error, result}, {type: 'died', message}

/** buffers lists the buffers of all typed arrays in a value. They move with a message and are not copied. */
export function buffers(value, found = []) {
  if (ArrayBuffer.isView(value)) found.push(value.buffer);
  else if (value && typeof value === 'object') for (const part of Object.values(value)) buffers(part, found);
  return found;
}
