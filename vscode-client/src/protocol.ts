/**
 * The messages that the server adds to LSP, as in apply_server/lsp/protocol.py, which is their
 * home. A Python test holds this file against it. Must not know who sends a message.
 */

export const METHODS = {
  apply: 'applyEdit/apply',
  cancel: 'applyEdit/cancel',
  prepare: 'applyEdit/prepare',
  stats: 'applyEdit/stats',
} as const;

export const SECTION = 'applyEdit';

export const INVALID_PARAMS = -32602;
export const REQUEST_CANCELLED = -32800;
export const CONTENT_MODIFIED = -32801;
export const REQUEST_FAILED = -32803;

export type Token = number | string;

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

export interface TextEdit {
  readonly range: Range;
  readonly newText: string;
}

export interface TextDocument {
  readonly uri: string;
  readonly version?: number;
}

export interface ApplyOptions {
  readonly verify?: 'always' | 'whenAmbiguous' | 'never';
  readonly allowedGuards?: readonly string[];
}

export interface ApplyParams {
  readonly textDocument: TextDocument;
  readonly instruction?: string;
  readonly snippet?: string;
  readonly selection?: Range;
  readonly editRange?: Range;
  readonly options?: ApplyOptions;
  readonly workDoneToken?: Token;
  readonly partialResultToken?: Token;
}

/** Times as their names say; `added` and `removed` are lines, shares are 0 to 1. */
export interface Report {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly targetPasses: number;
  readonly tokensPerPass: number;
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  readonly acceptanceRate: number;
  readonly prefillS: number;
  readonly decodeS: number;
  readonly tokensPerS: number;
  readonly durationMs: number;
  readonly added: number;
  readonly removed: number;
  readonly copiedShare: number;
  readonly verified: boolean;
  readonly warnings: readonly string[];
}

/** `edits` are against `version`, ascending and disjoint. */
export interface ApplyResult {
  readonly status: 'changed' | 'unchanged';
  readonly edits: readonly TextEdit[];
  readonly version: number | null;
  readonly report: Report;
}

export interface Preview {
  readonly edits: readonly TextEdit[];
  readonly kind: 'preview';
}

export interface Verified {
  readonly originalLine: number;
  readonly resultLine: number;
  readonly passes: number;
  readonly tokensPerS: number;
  readonly copiedShare: number;
  readonly share: number;
  readonly kind: 'verified';
}

export interface Delta {
  readonly fromLine: number;
  readonly toLine: number;
  readonly edits: readonly TextEdit[];
  readonly kind: 'delta';
}

export type PartialResult = Preview | Verified | Delta;

/** An error's `data`. */
export interface ErrorData {
  readonly code: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}
