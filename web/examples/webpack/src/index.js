import { load } from 'quantmf';

const q = await load(); // starts a worker
const model = await q.fit([[1, 2, 4], [3, 1, 90]], { method: 'nmf', rank: 1 });
document.body.textContent = `V: ${Array.from(model.v.data, (v) => v.toFixed(3)).join(' ')}`;
