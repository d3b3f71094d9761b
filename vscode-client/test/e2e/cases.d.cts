type Name =
  | 'cart.py'
  | 'snippet.py'
  | 'plain.py'
  | 'other.py'
  | 'crlf.py'
  | 'same.py'
  | 'direct.py'
  | 'slow.py'
  | 'slow2.py'
  | 'typed.py'
  | 'killed.py'
  | 'locked.py'
  | 'unended.py'
  | 'gone.py';
type Unanswered = 'unknown.py';

export const files: Readonly<Record<Name | Unanswered, string>>;
export const answers: Readonly<Record<Name, string>>;
export const snippet: string;
