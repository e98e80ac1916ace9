// This file makes the files that can be downloaded.
import { element } from './chart.js';
import { combined, known, maps } from './result.js';
import { $, fail, now } from './state.js';

const cell = (s) => (/[",\n\r]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
function csv(corner, columns, rows, m) {
  const lines = [[corner, ...columns].map(cell).join(',')];
  for (let i = 0; i < m.rows; i++) lines.push([cell(rows[i]), ...m.data.subarray(i * m.columns, (i + 1) * m.columns)].join(','));
  return new Blob([lines.join('\n'), '\n'], { type: 'text/csv' });
}

/** styled returns a figure as a file of SVG that has its style. Names may hold characters that XML has not. */
function styled(id) {
  const svg = $(id).querySelector('.plot svg').cloneNode(true);
  svg.prepend(element('style', {}, 'text{font:12px sans-serif}.axis{stroke:#555;fill:none}.line{stroke:#1b5e8c;fill:none;stroke-width:2}.dot{fill:#1b5e8c;fill-opacity:.55}.here{fill:#b3541e}.ring{fill:none;stroke:#b3541e;stroke-width:2}'));
  return new Blob([new XMLSerializer().serializeToString(svg).replace(/[\0-\x08\v\f\x0e-\x1f\ufffe\uffff]/g, '\ufffd')], { type: 'image/svg+xml' });
}

/** named returns the model's file with names and the command line. */
async function named() {
  const { table: t, model, name, of, layout } = now;
  const { command, stability } = of;
  const losses = /-loss /.test(command) ? '' : `-loss auto took ${t.negative ? 'frobenius' : 'kl'}: ${t.negative === 1 ? '1 value is' : `${t.negative || 'no'} value${t.negative ? 's are' : ' is'}`} negative`;
  await of.asked; // how well it predicts is part of the file
  return model.named(t.features, t.samples, { matrix: name, command, losses, log1p: Boolean(layout.log1p), top: Boolean(layout.top), unseen: of.told, stability });
}

const components = (k) => Array.from({ length: k }, (_, c) => `c${c + 1}`);
const files = {
  report: async (q) => {
    const { table: t, groups, sets } = now; // they may change meanwhile
    const page = await q.report(await named(), t.x, { ...known(groups), sets });
    return ['report.html', new Blob([page], { type: 'text/html' })];
  },
  model: async () => ['model.qmf', new Blob([await named()])],
  u: () => ['U.csv', csv('feature', components(now.model.rank), now.table.features, now.model.u)],
  v: () => ['V.csv', csv('component', now.table.samples, components(now.model.rank), now.model.v)],
  curves: async () => {
    const { model, table: t } = now;
    const n = t.x.columns;
    const lines = ['feature,uv,t'];
    for (let i = 0; i < t.x.rows; i++) {
      const row = combined(model, i).sort();
      const w = row.filter((_, j) => j % Math.ceil(n / 32) === 0 || j === n - 1);
      const values = model.method === 'nmf' ? w : await model.map(i, w);
      w.forEach((v, s) => lines.push(`${cell(t.features[i])},${v},${values[s]}`));
    }
    return ['curves.csv', new Blob([lines.join('\n'), '\n'], { type: 'text/csv' })];
  },
  losses: () => ['losses.svg', styled('losses')],
  curve: () => ['curve.svg', styled('curve')],
  scatter: () => ['samples.svg', styled('samples')],
  maps: async () => ['heatmaps.png', await maps.picture()],
  filled: () => {
    const { table: t, fitted } = now;
    return ['filled.csv', csv('feature', t.samples, t.features, { ...t.x, data: t.x.data.map((v, at) => (v === v ? v : fitted.data[at])) })];
  },
  placed: () => ['placed.csv', csv('component', now.placed.samples, components(now.model.rank), now.placed.v)],
};

/** downloads makes each button save its file. */
export function downloads(loading) {
  for (const b of document.querySelectorAll('[data-save]')) {
    b.onclick = async () => {
      try {
        const [name, blob] = await files[b.dataset.save](await loading);
        const url = URL.createObjectURL(blob);
        Object.assign(document.createElement('a'), { href: url, download: name }).click();
        setTimeout(() => URL.revokeObjectURL(url), 10000);
      } catch (e) {
        fail(e.message, 'save-problem');
      }
    };
  }
}
