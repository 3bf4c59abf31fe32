// Formats numbers.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const small = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** An exact count. */
export const count = (n) => whole.format(n);

/** A count or rate with three digits. */
export function about(n) {
  if (n >= 10000) return short.format(n);
  return n >= 100 ? whole.format(n) : small.format(n);
}

/** Microseconds. */
export function micros(us) {
  if (us < 1000) return `${small.format(us)} µs`;
  return millis(us / 1000);
}

/** Milliseconds. */
export function millis(ms) {
  if (ms < 1000) return `${small.format(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 120) return `${small.format(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 120) return `${whole.format(Math.floor(minutes))} min`;
  const hours = minutes / 60;
  return hours < 48 ? `${whole.format(Math.floor(hours))} h` : `${whole.format(Math.floor(hours / 24))} days`;
}

/** Upper bound in µs of the histogram bucket with this quantile (0 to 1); null if the histogram is empty. */
export function quantile(buckets, q) {
  const all = buckets.reduce((sum, n) => sum + n, 0);
  if (all === 0) return null;
  const rank = Math.max(1, Math.ceil(q * all));
  let below = 0;
  for (let b = 0; b < buckets.length; b++) {
    below += buckets[b];
    if (below >= rank) return 2 ** b;
  }
  return null;
}
