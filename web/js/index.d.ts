// quantmf: low-rank factorisation of a matrix X of d features (rows) and n samples (columns)
// with an increasing map T for every feature, learnt together with the factors.
//
//	nmf   X ≈ UV            qmf   X ≈ T(UV)
//	qmfq  X ≈ T(Π(T'(X)))   bqmf  X ≈ T(UV), U and V of either sign
//
// All computation runs in workers on this machine. Results have the same bits as those of the package in Go
// and of its command for the same data and options. Arguments are copied and never changed, unless transfer
// says otherwise.

/** A matrix, row after row: entry (i, j) is data[i * columns + j]. */
export interface Matrix {
  rows: number;
  columns: number;
  data: Float64Array;
}

/** A matrix as an argument: an object, or an array whose elements are the rows. Numbers of a Float32Array are
 * converted to double precision. */
export type MatrixLike =
  | { rows: number; columns: number; data: Float64Array | Float32Array | readonly number[] }
  | readonly (readonly number[] | Float64Array | Float32Array)[];

export type Numbers = Float64Array | Float32Array | readonly number[];

export type Method = 'nmf' | 'qmf' | 'qmfq' | 'bqmf';

/** Options of fits. An option that the method does not have is an OptionError. Defaults are those of
 * the package in Go, whose documentation has a table of them. */
export interface Settings {
  /** The divergence that is minimised: kl, frobenius, or the β of a β-divergence, from -2 to 4; default kl, of bqmf frobenius where
   * x has negative values. */
  loss?: 'kl' | 'frobenius' | number;
  /** The number of quantiles that are learnt for each feature, at least 2; default 8. */
  levels?: number;
  /** The entropic regularisation ε of the maps, from 1e-12 to 1e12; default 0.02. A larger ε makes smoother maps. */
  epsilon?: number;
  /** The function that brings the samples of a row onto [0, 1]; default logisticUnit. */
  squash?: 'logistic' | 'none' | 'logisticUnit' | 'arctan';
  /** The relative column error at which a map has converged, above 0; default 1e-9. Of bqmf the largest share of UV
   * by which the last epoch may change UV; default 0.003. */
  tolerance?: number;
  /** The most passes over a row for its map, at least 1; default 200. */
  maxIterations?: number;
  /** A map that has not converged gives a ConvergenceError; default false, which gives a warning. */
  strict?: boolean;
  /** The number of epochs, each a visit of every feature; default 4 (qmf; 20 where Adam steps U and V, as above rank 32),
   * 100 (qmfq), 20 (nmf; 10 under kl from 8192 samples on, 100 with multiplicative updates), 60 (bqmf). */
  epochs?: number;
  /** The seed of all random numbers, a whole number from 0 to 2^64-1; default 1. */
  seed?: number | bigint | string;
  /** The fit ends when the loss has not fallen by 1e-7 of itself in so many epochs, at least 1; default never. */
  patience?: number;
  /** The number of fits, each with the next seed, of which the one with the lowest loss is returned; default 1. */
  restarts?: number;
  /** The share of the cells that is hidden, up to 0.5; the epoch that predicts them best is returned. Default none. */
  validation?: number;
  /** NaN is a cell that was not observed; default false: NaN is a DataError. */
  missingValues?: boolean;
  /** Where a fit starts; default auto (qmf, qmfq: the start that predicts hidden cells best), of nmf uniform, under kl from 8192 samples on an NMF of 2048 of them. */
  start?: 'auto' | 'scores' | 'nmf' | 'uniform' | 'svd';
  /** Factors to start from: u is d × rank, v rank × n. */
  init?: { u: MatrixLike; v: MatrixLike };
  /** A model of the same method, rank and features, from which the fit goes on; x may have other samples. */
  model?: Model;
  /** The weight of the penalty on the logarithms of the factors of a qmf, from 0 to 1e30; default 0. */
  penalty?: number;
  /** The weights of the penalties of an nmf, from 0 to 1e30 each: L1 of U and of V, L2 of U and of V, those of
   * scikit-learn; default none. */
  penalties?: Numbers;
  /** The first columns of U of an nmf or a qmf, d × r: they are given, and stay. */
  fixedU?: MatrixLike;
  /** The weights of the samples, at least 0; 2 counts as the sample twice, 0 as none. */
  sampleWeights?: Numbers;
  /** The weights of the cells, as x is, at least 0; 0 is a cell that was not observed. */
  cellWeights?: MatrixLike;
  /** The rows, from 0, of which a bqmf says single values only, as sexes, ratings and counts are: all others take
   * any; [] is none. Default: the data show which. */
  discrete?: Numbers;
  /** How an nmf lowers the loss; default newton under kl and frobenius up to rank d+n, otherwise multiplicative. */
  updates?: 'newton' | 'multiplicative';
  /** The step size of Adam, above 0 and at most 100; default 0.2 (qmf; 0.06 where Adam steps U and V), 0.1 (qmfq). */
  learningRate?: number;
  /** How the learning rate changes over the epochs; default cosine, which falls to 0. */
  schedule?: 'cosine' | 'constant';
  /** Whether the lowest and the highest quantile of a feature are learnt; default free. */
  ends?: 'free' | 'pinned';
  /** The number of features between two steps of V of a qmf, at least 1; default 32. */
  batch?: number;
  /** The weight, in samples, by which maps are pulled towards straight lines, from 0 to 1e30; default chosen by
   * hidden cells. */
  shrinkage?: number;
  /** The share of a straight line in every map at the start, from 0 to 1; default chosen by hidden cells. */
  line?: number;
  /** The projection of a qmfq and its number of updates; default kl:5. */
  projection?: `kl:${number}` | `frobenius:${number}` | 'svd';
}

export interface FitOptions extends Settings {
  /** Default qmf. auto is nmf or qmf, with rank 0 also bqmf: the one that predicts hidden cells best. */
  method?: Method | 'auto';
  /** The number of components, at least 1; of bqmf the largest number, or 0 for a default; 0 asks auto for the best prediction. */
  rank: number;
}

/** What a fit reports while it works. Within a phase done rises from 0 to 1. */
export interface Progress {
  phase: 'unseen' | 'choice' | 'factors' | 'maps' | 'qmf' | 'epochs';
  done: number;
  /** The number of epochs that are done, and of all epochs. */
  epoch: number;
  epochs: number;
  /** The newest known entry of history; of qmf the mean loss over features, each at its visit. 0 before the phase epochs. */
  loss: number;
}

export interface How {
  /** When it aborts, the call ends and rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface HowWithMatrix extends How {
  /** Where it is true and the numbers of x are a Float64Array, they move to the worker and are not copied: from the call on the array
   * is empty, with all others on its buffer. Shared memory, and that of a module of WebAssembly, is copied nevertheless. A copy of a large
   * matrix keeps the calling thread busy for a millisecond or more a megabyte. */
  transfer?: boolean;
}

export interface HowToFit extends HowWithMatrix {
  /** Called while the fit works. If it throws, the fit stops and rejects with the thrown value. */
  onProgress?: (progress: Progress) => void;
}

export interface Top {
  /** The index of a feature or a sample, from 0. */
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
  /** The mean divergence of the visible cells before the first epoch and after each, and that of the hidden cells. Of bqmf
   * history is not a loss but the negative lower bound of the evidence, in nats a cell. */
  readonly history: Float64Array;
  readonly validation: Float64Array;
  /** The epoch whose model this is. */
  readonly best: number;
  readonly warnings: readonly string[];
  /** How far the map of each feature is from a straight line. An nmf has none. */
  readonly bend?: Float64Array;
  /** Of bqmf: the share of each component in the variance, and an estimate of the loss on cells that the fit
   * has not seen. */
  readonly relevance?: Float64Array;
  readonly leaveOneOut?: number;
  /** Of a fit by auto: what the fits that chose the method found, which `unseen` takes. */
  readonly tried?: string;
  /** The model as a file, which the command `quantmf` and other programs read. */
  readonly bytes: Uint8Array;

  /** The coordinates, k × n', of n' new samples x, d × n'. */
  transform(x: MatrixLike, how?: HowWithMatrix): Promise<Matrix>;
  /** T'(x) of a model by qmfq: x, d × n', on the scales on which the model has low rank. */
  normalize(x: MatrixLike, how?: HowWithMatrix): Promise<Matrix>;
  /** The fitted matrix, d × n. */
  reconstruct(how?: How): Promise<Matrix>;
  /** The mean divergence of new samples from the model at their coordinates. */
  score(x: MatrixLike, how?: HowWithMatrix): Promise<number>;
  /** That of each of the new samples: the largest are the odd ones. */
  scores(x: MatrixLike, how?: HowWithMatrix): Promise<Float64Array>;
  /** What the model says of every cell of new samples, NaN cells included: d × n'. */
  predict(x: MatrixLike, how?: HowWithMatrix): Promise<Matrix>;
  /** Of bqmf: a model that has learnt from new samples too. Its own samples stay those of the fit. */
  updated(x: MatrixLike, how?: HowWithMatrix): Promise<Model>;
  /** Of bqmf: the central intervals that hold each cell of new samples, or of the fitted ones, with probability p,
   * from 0 to 1; the median of each fitted cell, and its deviation. */
  predictInterval(x: MatrixLike, p: number, how?: HowWithMatrix): Promise<{ low: Matrix; high: Matrix }>;
  interval(p: number, how?: How): Promise<{ low: Matrix; high: Matrix }>;
  median(how?: How): Promise<Matrix>;
  deviation(how?: How): Promise<Matrix>;
  /** Of bqmf: coordinates of the fitted samples whose distances are those of UV, to cluster or to draw: r × n. */
  embedding(how?: How): Promise<Matrix>;
  /** T of a feature, an index from 0, at values of its row of UV. An nmf has no maps. */
  map(row: number, values: Numbers, how?: How): Promise<Float64Array>;
  /** The model file with names of features and samples, by which the command finds features, and with the
   * origin of the model, which the command prints and a report shows. */
  named(features: readonly string[], samples: readonly string[], made?: Made, how?: How): Promise<Uint8Array>;
  /** The first features and samples of every component; x is the matrix that was fitted. */
  top(x: MatrixLike, count: number, how?: HowWithMatrix): Promise<{ features: Top[][]; samples: Top[][] }>;
}

/** The origin of a model; each text is "" where it is not known. */
export interface Made {
  /** The name of the matrix. */
  matrix?: string;
  /** The command line that repeats the fit. */
  command?: string;
  /** Which loss was taken and why, in words. */
  losses?: string;
  /** Whether the matrix was read with log1p, and with top. */
  log1p?: boolean;
  top?: boolean;
  /** How well unseen cells are predicted. */
  unseen?: Unseen;
  /** The stability of each component of a consensus. */
  stability?: Numbers;
}

/** How well cells that a model has not seen are predicted, by further fits from which a tenth of the cells was
 * hidden. Shares are of how far these cells are from the means of their rows' other cells. */
export interface Unseen {
  /** How many cells were predicted; 0 where none can be hidden. */
  values: number;
  /** The share that is predicted, its standard error, and the share of the cells that were fitted. */
  predicted: number;
  standardError: number;
  fitted: number;
  /** Whether the model predicts better than the means of rows, beyond chance. */
  found: boolean;
  /** Whether it predicts no better: components and curves then show noise. */
  noise: boolean;
  /** All of this in words, and what is said of the methods beside it, "" for none. */
  text: string;
  others: string;
  numbers: { value: string; label: string }[];
  /** What in x makes it look better, or about something else, than it is. */
  warnings: string[];
  /** What the file of a model has of it. */
  lines: string;
}

export interface UnseenOptions extends Settings {
  /** Default that of the model; of bqmf what the fit had. */
  rank?: number;
  /** The names of the rows, for warnings; default f1, f2, ... */
  features?: readonly string[];
}

export interface RankOptions extends Settings {
  /** The ranks that are compared. Each is fitted `repeats` times. */
  ranks: readonly number[];
  method?: Method;
  /** How often cells are hidden; default 5. */
  repeats?: number;
  /** The share of the cells that is hidden, up to 0.5; default 0.1. */
  share?: number;
  /** The seed of the random choice of cells, a whole number; default 1. */
  maskSeed?: number;
}

/** How well fits of a rank predict cells that they have not seen. */
export interface Trial {
  rank: number;
  /** The mean of the losses on hidden cells, and its standard error. */
  mean: number;
  standardError: number;
  losses: Float64Array;
  /** The same, where every feature counts the same: in units of its own spread. */
  relative: Float64Array;
  /** Both, of the mean of each feature alone. */
  baseline: Float64Array;
  baselineRelative: Float64Array;
}

/** Options of operators. */
export interface OperatorSettings {
  /** ε: 0, or from 1e-12 to 1e12; default 0.01. */
  epsilon?: number;
  /** The function that brings x onto [0, 1]; default logistic. */
  squash?: 'logistic' | 'none' | 'logisticUnit' | 'arctan';
  /** The relative column error at which the transport has converged, above 0; default 1e-9. */
  tolerance?: number;
  /** The most passes over x, at least 1; default 3000. */
  maxIterations?: number;
  /** The exact number of iterations of the paper's Algorithm 1, at least 1, in place of a converged transport. */
  iterations?: number;
  /** A transport that has not converged gives a ConvergenceError. */
  strict?: boolean;
  /** The weights of the samples, non-negative; default uniform. */
  weights?: Numbers;
  /** The targets, increasing; default a regular grid on [0, 1]. */
  targets?: Numbers;
  /** The weights of the targets, positive; default uniform. */
  targetWeights?: Numbers;
  /** The number of targets, at least 1; default as many as samples. */
  levels?: number;
  /** Ranks whose mean is exactly (n + 1) / 2. */
  midpointRanks?: boolean;
}

/** A transposed Jacobian times z: the derivatives in the samples x, their weights a, the weights b of
 * the targets, the targets y, ε and, for softQuantile, q. */
export interface Gradient {
  x: Float64Array;
  a: Float64Array;
  b: Float64Array;
  y: Float64Array;
  epsilon: number;
  q?: Float64Array;
}

export interface ReadOptions {
  /** The name of the file in errors. */
  name?: string;
  /** The file has samples in rows; default false. */
  transpose?: boolean;
  /** For text files: whether the first line has the names of the samples; default auto, which detects it. */
  header?: 'auto' | 'yes' | 'no';
  /** For text files: the column with the names of the features, by its heading or its number from 1, or "none"
   * for no such column. Further numbers of a list such as 1,3-5 are columns that are left out.
   * Default "", which detects it. */
  names?: string;
  /** For text files: the number of lines above the table; default 0. */
  skip?: number;
  /** Words that mean a missing value beside the usual ones, with commas between. */
  na?: string;
  /** What a limit of detection such as <0.5 becomes; default "", which refuses it. */
  below?: '' | 'half' | 'limit' | 'missing';
  /** What stands before decimals; default "", which detects it. */
  decimal?: '' | 'point' | 'comma';
  /** Of a table with a line for each value: the columns of features, samples and values, by heading or number, with
   * commas between; default "", which refuses such a table. */
  long?: string;
  /** Of a workbook: the sheet, by name or number; default the first. */
  sheet?: string;
  /** Leave out features and samples without any value; default false. */
  full?: boolean;
  /** The most bytes of memory that reading may take; default 1 GiB. */
  memory?: number;
  /** Take log(1+x) of every number; default false. */
  log1p?: boolean;
  /** Keep so many features, those of largest standard deviation; default 0, all. */
  top?: number;
}

/** A matrix from a file, with remarks about it. */
export interface Table {
  x: Matrix;
  features: string[];
  samples: string[];
  /** False where the file has no names; the names are then f1, f2, ... or s1, s2, ... */
  namedFeatures: boolean;
  namedSamples: boolean;
  /** In words: which parts of the file were read as names, */
  taken: string;
  /** which of these may be wrong, */
  warnings: string[];
  /** and what is unusual about names and rows. */
  remarks: string[];
  /** The numbers of missing and of negative cells, and the range of the cells that are not missing. */
  missing: number;
  negative: number;
  least: number;
  most: number;
}

/** Groups of features or of samples. */
export interface Groups {
  /** The title of the groups, "" where it is not known. */
  title: string;
  names: string[];
  /** The colour of each group, #rrggbb. */
  colours: string[];
  /** For each feature or sample an index into names, or -1 where it has no group. */
  of: number[];
}

/** What is known of samples and features, against which a report tests components. */
export interface KnownOptions {
  /** The text of a table whose first column has names of samples or features, and whose others have groups or numbers. */
  groups?: string;
  /** The columns of it that are taken, by their headings, with commas between; default all. */
  by?: string;
  /** Two columns of it: the time of each sample, and 1 where it ended with the event, else 0. */
  survival?: string;
  /** The text of a GMT file, sets of features. */
  sets?: string;
}

/** A table of tests of components, the most certain first. */
export interface Tests {
  title: string;
  /** How to read it. */
  how: string;
  heading: string[];
  rows: string[][];
  /** Whether a row may be chance: its q is above 0.05. */
  chance: boolean[];
  /** How many tests there are, and of how many q is at most 0.05. */
  count: string;
}

export interface ReportOptions extends KnownOptions {
  /** Samples of the heatmaps are ordered by likeness in the fit; default false: they have the order of the table.
   * Features are always ordered by likeness. */
  byFit?: boolean;
}

/** Options of a fit by NMF, but those that give all seeds the same start. */
export interface ConsensusOptions extends Omit<FitOptions, 'method'> {
  /** The number of fits, from 2 to 1000; default 20. */
  seeds?: number;
}

export interface Consensus {
  model: Model;
  /** Of each component, from -1 to 1, where all fits have the same. */
  stability: Float64Array;
  /** The mean silhouette of all components of the fits that were clustered. */
  overall: number;
  /** The components of the fits that were left out, since few others are near them. */
  left: number;
  /** The mean divergence of each fit. */
  losses: Float64Array;
}

export interface Quantmf {
  /** Whether the loops use WebAssembly SIMD. The bits are the same with and without it. */
  readonly vectors: boolean;
  fit(x: MatrixLike, options: FitOptions, how?: HowToFit): Promise<Model>;
  /** Says how well a model predicts cells of x, the matrix that was fitted, which it has not seen. The options are those
   * of its fit. It makes the further fits, but for a model by auto, whose choice has made them. */
  unseen(model: Model, x: MatrixLike, options?: UnseenOptions, how?: HowToFit): Promise<Unseen>;
  /** What NMFs from many seeds agree on: U has the components that come back, V is fitted to them. */
  consensus(x: MatrixLike, options: ConsensusOptions, how?: How): Promise<Consensus>;
  /** A model from its file, as `bytes` or the command wrote it. */
  open(file: Uint8Array, how?: How): Promise<Model>;
  /** Compares ranks by hidden cells, spread over the workers. */
  rank(x: MatrixLike, options: RankOptions, how?: How & { onProgress?: (progress: { phase: 'rank'; done: number }) => void }): Promise<Trial[]>;
  /** Reads a matrix as the command does: CSV, TSV, GCT, a series matrix of GEO, Matrix Market, npy
   * or npz, plain or compressed by gzip or bzip2. The first call loads the readers. They run in a worker that ends with the
   * call. A Blob, such as a File, is read piece by piece. */
  read(file: Blob | Uint8Array, options?: ReadOptions, how?: How & { onProgress?: (progress: { phase: 'read'; done: number }) => void }): Promise<Table>;
  /** Reads the colours of a table of names and their groups, as the command's -groups does: those of its first column,
   * or of the first of `by`. There may be at most 30 groups. A TableError says that no name is known or that a name has
   * two groups. */
  groups(text: string, of: { features: readonly string[]; samples: readonly string[]; name?: string; by?: string }, how?: How): Promise<{ features: Groups | null; samples: Groups | null; warnings: string[] }>;
  /** The report of the command's `report`, one file of HTML, for the file of a model (with names if it is
   * that of `named`) and the matrix that was fitted. A worker of the engine computes what the model says of the
   * matrix, and the module of the readers draws it. */
  report(file: Uint8Array, x: MatrixLike, options?: ReportOptions, how?: How): Promise<Uint8Array>;
  /** The tables of tests of that report. */
  tests(file: Uint8Array, x: MatrixLike, options?: KnownOptions, how?: How): Promise<Tests[]>;
  /** An estimate of the bytes that a fit takes beside x. */
  footprint(options: FitOptions & { rows: number; columns: number }): Promise<number>;
  /** Estimates what a fit of x takes on this machine: the bytes of footprint, and the seconds. The seconds are
   * estimated from fits of some rows of x, which usually take less than a second. They are NaN where these fits would take
   * more than about three seconds. */
  estimate(x: Matrix, options: FitOptions, how?: How): Promise<{ bytes: number; seconds: number }>;

  /** The soft ranks of the n numbers x, in [0, n]. */
  softRank(x: Numbers, options?: OperatorSettings, how?: How): Promise<Float64Array>;
  /** The soft order statistics of x. */
  softSort(x: Numbers, options?: OperatorSettings, how?: How): Promise<Float64Array>;
  /** x mapped to the distribution with the quantiles q, which must not decrease. */
  softQuantile(x: Numbers, q: Numbers, options?: OperatorSettings, how?: How): Promise<Float64Array>;
  /** The transposed Jacobians of the three operators times z. */
  softRankVJP(x: Numbers, z: Numbers, options?: OperatorSettings, how?: How): Promise<Gradient>;
  softSortVJP(x: Numbers, z: Numbers, options?: OperatorSettings, how?: How): Promise<Gradient>;
  softQuantileVJP(x: Numbers, q: Numbers, z: Numbers, options?: OperatorSettings, how?: How): Promise<Gradient>;

  /** Ends the workers. Calls under way are rejected. */
  close(): Promise<void>;
}

export interface LoadOptions {
  /** The address of the folder of worker.js and the modules, which are .wasm; on a page it may be relative to that of the page. Default
   * the folder of this module. */
  url?: string | URL;
  /** The most workers; default one fewer than processors, at most 4. One starts at once, the others when calls need them. */
  workers?: number;
  /** Whether to use WebAssembly SIMD; default true where the machine has it. */
  simd?: boolean;
}

export function load(options?: LoadOptions): Promise<Quantmf>;

/** The class of all errors of the package. */
export class QuantmfError extends Error {}

/** An option that cannot have its value, that the call does not have, or that contradicts another. */
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

/** An error in the content of a file. line and column count from 1, and are 0 where they do
 * not apply. */
export class TableError extends QuantmfError {
  readonly line: number;
  readonly column: number;
  readonly feature: string;
  readonly sample: string;
  readonly problem: string;
}
