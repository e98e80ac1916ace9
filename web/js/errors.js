// This file has the errors of the package in Go, with their fields.

/** QuantmfError is the class of all of them. */
export class QuantmfError extends Error {
  constructor(message, fields = {}) {
    super(message);
    this.name = new.target.name;
    Object.assign(this, fields);
  }
}
export class OptionError extends QuantmfError {}
export class DataError extends QuantmfError {}
export class ShapeError extends QuantmfError {}
export class FormatError extends QuantmfError {}
export class ConvergenceError extends QuantmfError {}
export class TableError extends QuantmfError {}

const kinds = { OptionError, DataError, ShapeError, FormatError, ConvergenceError, TableError };

/** made returns the error that the engine describes. */
export function made({ kind, message, ...fields }) {
  return new (kinds[kind] ?? QuantmfError)(message, fields);
}

/** said is a value as a message shows it: of what has no text, or none that is surely there, its type. */
export const said = (v) => (v === null ? 'null' : ['object', 'function', 'symbol'].includes(typeof v) ? typeof v : String(v));

export const shape = (what, got, want) => made({ kind: 'ShapeError', message: `quantmf: ${what}: got ${got}, want ${want}`, what, got, want });
export const option = (name, value, bound) => made({ kind: 'OptionError', message: `quantmf: ${name} ${said(value)}: ${bound}`, option: name, value: said(value), bound });
