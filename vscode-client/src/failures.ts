/**
 * Errors as the user meets them: a stable code, a sentence, and details for programs. Must not know
 * `vscode`; an LSP error is anything with a numeric `code` and perhaps our `data`.
 */

import { CONTENT_MODIFIED, REQUEST_CANCELLED, type ErrorData } from './protocol';
import { FILE_CHANGED } from './words';

export class Failure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
    this.name = code;
  }
}

export const cancelled = (): Failure => new Failure('Cancelled', 'Cancelled. Nothing was changed.');
export const fileChanged = (): Failure => new Failure('DocumentChanged', FILE_CHANGED);

/** `error` as a Failure, whatever was thrown. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) {
    return error;
  }
  if (!(error instanceof Error)) {
    return new Failure('InternalError', String(error));
  }
  const { code, data } = error as { code?: unknown; data?: unknown };
  if (isErrorData(data)) {
    return new Failure(data.code, data.message, data.details);
  }
  if (code === REQUEST_CANCELLED) {
    return cancelled();
  }
  if (code === CONTENT_MODIFIED) {
    return fileChanged();
  }
  return new Failure('InternalError', error.message);
}

/** The guards that object, where a guard blocked the result. */
export function guardsOf(failure: Failure): string[] {
  const guards = failure.details.guards;
  return Array.isArray(guards) ? guards.filter((name) => typeof name === 'string') : [];
}

/** The diff of a result that was blocked. */
export function diffOf(failure: Failure): string | undefined {
  const diff = failure.details.diff;
  return typeof diff === 'string' ? diff : undefined;
}

function isErrorData(data: unknown): data is ErrorData {
  return (
    typeof data === 'object' &&
    data !== null &&
    typeof (data as Partial<ErrorData>).code === 'string' &&
    typeof (data as Partial<ErrorData>).message === 'string' &&
    typeof (data as Partial<ErrorData>).details === 'object'
  );
}
