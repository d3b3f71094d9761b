/** When a server that died is started again. Must not know what a server is. */

const MOST = 5;
const WINDOW_MS = 3 * 60 * 1000;
const FIRST_DELAY_MS = 250;

/** At most 5 restarts in 3 minutes, each after twice the delay of the one before. */
export class RestartPolicy {
  private restarts: number[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  /** The delay in ms before the next restart, or undefined where it is time to give up. */
  next(): number | undefined {
    const now = this.now();
    this.restarts = this.restarts.filter((at) => now - at < WINDOW_MS);
    if (this.restarts.length >= MOST) {
      return undefined;
    }
    this.restarts.push(now);
    return FIRST_DELAY_MS * 2 ** (this.restarts.length - 1);
  }

  /** A person asked for a start: count anew. */
  reset(): void {
    this.restarts = [];
  }
}
