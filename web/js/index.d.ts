// quantmf: low-rank factorisation of a matrix X of d features (rows) and n samples (columns)
// with an increasing map T for every feature, learnt together with the factors.
//
//	nmf   X ≈ UV            qmf   X ≈ T(UV)
//	qmfq  X ≈ T(Π(T'(X)))   bqmf  X ≈ T(UV), U and V of either sign
//
// Everything runs in workers of this machine. Results have the bits that the package in Go and
// its command give for the same data and options. Arguments are copied, never changed.

/** A matrix, row after row: entry (i, j) is data[i * columns + j]. */
export interface Matrix {
  rows: number;
  columns: number;
  data: Float64Array;
}

/** What a matrix may be given as; of arrays each is a row. Float32Array is widened. */
export type MatrixLike =
  | { rows: number; columns: number; data: Float64Array | Float32Array | readonly number[] }
  | readonly (readonly number[] | Float64Array | Float32Array)[];

export type Numbers = Float64Array | Float32Array | readonly number[];

export type Method = 'nmf' | 'qmf' | 'qmfq' | 'bqmf';

/** Options of fits. One that a method has no use for is an OptionError. Defaults are those of
 * the package in Go, whose documentation has a table of them. */
export interface Settings {
  /** What is minimised: kl (default), frobenius, or the β of a β-divergence, from -2 to 4. */
  loss?: 'kl' | 'frobenius' | number;
  /** Quantiles learnt a feature, at least 2; default 8. */
  levels?: number;
  /** Entropic regularisation ε of the maps, from 1e-12 to 1e12; default 0.02. */
  epsilon?: number;
  squash?: 'logistic' | 'none' | 'logisticUnit' | 'arctan';
  /** Above 0; default 1e-9, of bqmf 3e-3. */
  tolerance?: number;
  /** Most passes over a row, at least 1; default 200. */
  maxIterations?: number;
  /** A map that has not converged is a ConvergenceError. */
  strict?: boolean;
  /** Visits of every feature; default 4 (qmf), 100 (qmfq), 20 (nmf), 60 (bqmf). */
  epochs?: number;
  /** Of everything random, from 0 to 2^64-1; default 1. */
  seed?: number | bigint | string;
  /** End when the loss has not fallen for so many epochs; default never. */
  patience?: number;
  /** Fits, each with the next seed, of which the best is taken; default 1. */
  restarts?: number;
  /** Hide this share of the cells, up to 0.5, and take the epoch that predicts them best. */
  validation?: number;
  /** NaN stands for a cell that was not observed; otherwise it is a DataError. */
  missingValues?: boolean;
  start?: 'auto' | 'scores' | 'nmf' | 'uniform' | 'svd';
  /** Factors to start from: u is d × rank, v rank × n. */
  init?: { u: MatrixLike; v: MatrixLike };
  penalty?: number;
  updates?: 'newton' | 'multiplicative';
  learningRate?: number;
  schedule?: 'cosine' | 'constant';
  ends?: 'free' | 'pinned';
  batch?: number;
  shrinkage?: number;
  projection?: `kl:${number}` | `frobenius:${number}` | 'svd';
}

export interface FitOptions extends Settings {
  /** Default qmf. */
  method?: Method;
  /** Components, at least 1; of bqmf the most there may be, 0 for a default. */
  rank: number;
}

/** What a fit reports while it works. Within a phase done rises from 0 to 1. */
export interface Progress {
  phase: 'choice' | 'factors' | 'maps' | 'qmf' | 'epochs';
  done: number;
  /** Epochs done, and in all. */
  epoch: number;
  epochs: number;
  /** The newest entry of history that is known, of qmf the mean over features at their visits; 0 before the phase epochs. */
  loss: number;
}

export interface How {
  /** Ends the call, which then rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface HowToFit extends How {
  /** What it throws stops the fit, which then rejects with that. */
  onProgress?: (progress: Progress) => void;
}

export interface Top {
  /** Of a feature or a sample, from 0. */
  index: number;
  value: number;
}

export interface Model {
  readonly method: Method;
  /** d, n and k. */
  readonly rows: number;
  readonly columns: number;
  readonly rank: number;
  /** The factors: d × k and k × n. */
  readonly u: Matrix;
  readonly v: Matrix;
  /** Mean divergence of the visible cells, and of the hidden ones, after each epoch. Of bqmf
   * history is no loss: the negative lower bound of the evidence, in nats a cell. */
  readonly history: Float64Array;
  readonly validation: Float64Array;
  /** The epoch whose model this is. */
  readonly best: number;
  readonly warnings: readonly string[];
  /** How far the map of each feature is from a straight line; not of nmf. */
  readonly bend?: Float64Array;
  /** Of bqmf: the share of the variance of each component, and an estimate of the loss on cells
   * that nobody has seen. */
  readonly relevance?: Float64Array;
  readonly leaveOneOut?: number;
  /** The model as a file, which the command `quantmf` and other programs read. */
  readonly bytes: Uint8Array;

  /** The coordinates, k × n', of n' new samples x, d × n'. */
  transform(x: MatrixLike, how?: How): Promise<Matrix>;
  /** T'(x) of a model by qmfq: x, d × n', on the scales on which it is of low rank. */
  normalize(x: MatrixLike, how?: How): Promise<Matrix>;
  /** The fitted matrix, d × n. */
  reconstruct(how?: How): Promise<Matrix>;
  /** The mean divergence of new samples from the model at their coordinates. */
  score(x: MatrixLike, how?: How): Promise<number>;
  /** T of a feature at values of its row of UV; not of nmf. */
  map(row: number, values: Numbers, how?: How): Promise<Float64Array>;
  /** The file with names of features and samples, which the command finds features by, and with
   * how the model came about, which the command tells and a report shows. */
  named(features: readonly string[], samples: readonly string[], made?: Made, how?: How): Promise<Uint8Array>;
  /** The first features and samples of every component; x is the matrix that was fitted. */
  top(x: MatrixLike, count: number, how?: How): Promise<{ features: Top[][]; samples: Top[][] }>;
}

/** How a model came about; each "" where it is not known. */
export interface Made {
  /** The name of the matrix. */
  matrix?: string;
  /** The command line that repeats the fit. */
  command?: string;
  /** Which loss was taken and why, in words. */
  losses?: string;
}

export interface RankOptions extends Settings {
  /** Those to compare. Each is fitted `repeats` times. */
  ranks: readonly number[];
  method?: Method;
  /** How often cells are hidden; default 5. */
  repeats?: number;
  /** The share of the cells that is hidden, up to 0.5; default 0.1. */
  share?: number;
  /** Of the random choice of cells, a whole number; default 1. */
  maskSeed?: number;
}

/** How well fits of a rank predict cells that they have not seen. */
export interface Trial {
  rank: number;
  /** The mean of losses, and its standard error. */
  mean: number;
  standardError: number;
  losses: Float64Array;
}

/** Options of operators. */
export interface OperatorSettings {
  /** ε: 0, or from 1e-12 to 1e12; default 0.01. */
  epsilon?: number;
  squash?: 'logistic' | 'none' | 'logisticUnit' | 'arctan';
  tolerance?: number;
  maxIterations?: number;
  iterations?: number;
  strict?: boolean;
  /** Weights of the samples, targets and their weights. */
  weights?: Numbers;
  targets?: Numbers;
  targetWeights?: Numbers;
  /** The number of targets; default as many as samples. */
  levels?: number;
  midpointRanks?: boolean;
}

/** A transposed Jacobian times z: derivatives in the samples, their weights, the weights of
 * the targets, the targets, ε and, of softQuantile, q. */
export interface Gradient {
  x: Float64Array;
  a: Float64Array;
  b: Float64Array;
  y: Float64Array;
  epsilon: number;
  q?: Float64Array;
}

export interface ReadOptions {
  /** What errors call the file. */
  name?: string;
  /** Samples are in rows. */
  transpose?: boolean;
  /** Of text: whether the first line holds names, those of the samples; default auto, to find out. */
  header?: 'auto' | 'yes' | 'no';
  /** Of text: the column that names the features, by its heading or its number, from 1; "none"
   * is no such column. The further numbers of a list such as 1,3-5 are columns to be left out.
   * Default "", to find out. */
  names?: string;
  /** The most bytes that reading may take; default 1 GiB. */
  memory?: number;
}

/** A matrix from a file, and what is odd about it. */
export interface Table {
  x: Matrix;
  features: string[];
  samples: string[];
  /** False where the file has no names, and f1, f2, ... or s1, s2, ... stand instead. */
  namedFeatures: boolean;
  namedSamples: boolean;
  /** In words: what was taken for names, what may have been taken wrongly, and what is odd
   * about names and rows. */
  taken: string;
  warnings: string[];
  remarks: string[];
  /** Counts of cells, and the range of the others. */
  missing: number;
  negative: number;
  least: number;
  most: number;
}

/** Groups of features or of samples. */
export interface Groups {
  /** What the groups are, "" where it is not known. */
  title: string;
  names: string[];
  /** A colour of each, #rrggbb. */
  colours: string[];
  /** For every feature or sample an index into names, -1 where it has no group. */
  of: number[];
}

export interface ReportOptions {
  /** The text of a table of names and their groups. */
  groups?: string;
  /** Like beside like as in the fit, not as in the table. */
  byFit?: boolean;
}

export interface Quantmf {
  /** Whether the loops run on vectors. The bits are the same either way. */
  readonly vectors: boolean;
  fit(x: MatrixLike, options: FitOptions, how?: HowToFit): Promise<Model>;
  /** A model from its file, as `bytes` or the command wrote it. */
  open(file: Uint8Array, how?: How): Promise<Model>;
  /** Compares ranks by hidden cells, spread over the workers. */
  rank(x: MatrixLike, options: RankOptions, how?: How & { onProgress?: (progress: { phase: 'rank'; done: number }) => void }): Promise<Trial[]>;
  /** Reads a matrix as the command does: CSV, TSV, GCT, Matrix Market, npy or npz, plain or
   * compressed by gzip or bzip2. The readers are loaded when this is called first, and run in
   * a worker that ends with the call. A Blob (a File is one) is read piece by piece. */
  read(file: Blob | Uint8Array, options?: ReadOptions, how?: How & { onProgress?: (progress: { phase: 'read'; done: number }) => void }): Promise<Table>;
  /** Reads a table of two columns, names and their groups, as the command's -groups does: at
   * most 30 groups; a TableError where no name is known or one has two groups. */
  groups(text: string, of: { features: readonly string[]; samples: readonly string[]; name?: string }, how?: How): Promise<{ features: Groups | null; samples: Groups | null; warnings: string[] }>;
  /** The page of figures, one file of HTML, that the command's `report` writes of the file of a
   * model (`named` has names in it) and the matrix that was fitted. A worker of the engine says what the model says of the
   * matrix, and the module of the readers draws it. */
  report(file: Uint8Array, x: MatrixLike, options?: ReportOptions, how?: How): Promise<Uint8Array>;
  /** An estimate of the bytes that a fit takes beside x. */
  footprint(options: FitOptions & { rows: number; columns: number }): Promise<number>;
  /** What a fit of x takes here: the bytes of footprint, and about how many seconds, from fits
   * of some of its rows, which take less than a second themselves as a rule; NaN where those do
   * not tell in three. */
  estimate(x: Matrix, options: FitOptions, how?: How): Promise<{ bytes: number; seconds: number }>;

  /** n soft ranks of x, in [0, n]. */
  softRank(x: Numbers, options?: OperatorSettings, how?: How): Promise<Float64Array>;
  /** Soft order statistics of x. */
  softSort(x: Numbers, options?: OperatorSettings, how?: How): Promise<Float64Array>;
  /** x carried to the distribution with the quantiles q, which do not fall. */
  softQuantile(x: Numbers, q: Numbers, options?: OperatorSettings, how?: How): Promise<Float64Array>;
  softRankVJP(x: Numbers, z: Numbers, options?: OperatorSettings, how?: How): Promise<Gradient>;
  softSortVJP(x: Numbers, z: Numbers, options?: OperatorSettings, how?: How): Promise<Gradient>;
  softQuantileVJP(x: Numbers, q: Numbers, z: Numbers, options?: OperatorSettings, how?: How): Promise<Gradient>;

  /** Ends the workers. Calls under way are rejected. */
  close(): Promise<void>;
}

export interface LoadOptions {
  /** The folder of worker.js, engine.wasm and kernels.wasm; default that of this module. */
  url?: string | URL;
  /** The most workers; default one fewer than processors, at most 4. One starts at once. */
  workers?: number;
  /** false leaves the vectors out; default where the machine has them. */
  simd?: boolean;
}

export function load(options?: LoadOptions): Promise<Quantmf>;

/** Every error of the package. */
export class QuantmfError extends Error {}

/** An option that cannot have its value, has no use here, or contradicts another. */
export class OptionError extends QuantmfError {
  readonly option: string;
  readonly value: string;
  readonly bound: string;
}

/** A number in the data that cannot be used; row and column are -1 where they do not apply. */
export class DataError extends QuantmfError {
  readonly row: number;
  readonly column: number;
  readonly value: number;
  readonly problem: string;
}

/** Lengths or sizes that do not fit. */
export class ShapeError extends QuantmfError {
  readonly what: string;
  readonly got: string;
  readonly want: string;
}

/** A model file that is damaged or of another kind. */
export class FormatError extends QuantmfError {
  readonly offset: number;
  readonly problem: string;
}

/** A map that did not converge, under strict. */
export class ConvergenceError extends QuantmfError {
  readonly row: number;
  readonly iterations: number;
  readonly marginalError: number;
  readonly tolerance: number;
}

/** A fault in the content of a file; line and column count from 1 and are 0 where they do
 * not apply. */
export class TableError extends QuantmfError {
  readonly line: number;
  readonly column: number;
  readonly feature: string;
  readonly sample: string;
  readonly problem: string;
}
