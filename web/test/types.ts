// Uses of the declarations; tsc reads this and nothing runs it.
import { DataError, type FitOptions, type Model, OptionError, type Trial, load } from 'quantmf';

const options: FitOptions = { method: 'qmf', rank: 4, epsilon: 0.02, projection: 'kl:20', seed: 12345678901234567890n };
// @ts-expect-error: there is no such method
const wrong: FitOptions = { method: 'pca', rank: 4 };
// @ts-expect-error: a fit needs a rank
const none: FitOptions = { method: 'nmf' };

export async function use(): Promise<number> {
  const stop = new AbortController();
  const q = await load({ workers: 2, url: new URL('https://example.org/') });
  const model: Model = await q.fit([[1, 2], [3, 4]], options, { signal: stop.signal, onProgress: (p) => console.log(p.phase, p.loss) });
  const v: Float64Array = (await model.transform({ rows: 2, columns: 1, data: new Float64Array(2) }, { transfer: true })).data;
  const said: number = (await model.scores([[1], [2]]))[0]! + (await model.predict([[1], [2]])).data[0]! + (await model.interval(0.9)).low.rows;
  // @ts-expect-error: a model does not change
  model.rank = 3;
  const trials: Trial[] = await q.rank([[1]], { ranks: [1, 2] });
  const { x, features, samples } = await q.read(new Blob(['a,b']), { name: 'x.csv' }, { signal: stop.signal, onProgress: (p) => console.log(p.done) });
  const page: Uint8Array = await q.report(await model.named(features, samples, { matrix: 'x.csv' }), x, { groups: 'a,b' });
  const groups: string[] | undefined = (await q.groups('a,b', { features, samples })).samples?.names;
  const { seconds } = await q.estimate(x, options);
  console.log(page.length, groups, seconds);
  const g = await q.softQuantileVJP([1, 2], [0, 1], [1, 1]);
  try {
    await q.open(model.bytes);
  } catch (e) {
    if (e instanceof DataError) return e.row + e.column;
    if (e instanceof OptionError) return e.option.length;
  }
  await q.close();
  return said + v[0]! + trials[0]!.mean + (g.q?.[0] ?? 0) + model.warnings.length;
}
export const unused = [wrong, none];
