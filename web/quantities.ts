/** Sizes and times in words. */
import { html, type Html } from './html.ts';

const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Such as `1.4 MiB`. */
export function readableSize(bytes: number): string {
  const power = Math.min(Math.max(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 0), units.length - 1);
  const amount = bytes / 1_024 ** power;
  if (power === 0) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  return `${amount >= 100 ? Math.floor(amount) : Math.floor(amount * 10) / 10} ${units[power]}`;
}

/** Such as `1.4 MiB (1,468,006 bytes)`. */
export function exactSize(bytes: number): string {
  return bytes < 1_024 ? readableSize(bytes) : `${readableSize(bytes)} (${bytes.toLocaleString('en')} bytes)`;
}

/** Seconds. */
const spans: readonly (readonly [string, number])[] = [['day', 86_400], ['hour', 3_600], ['minute', 60], ['second', 1]];

/** How long it is until then, such as `23 hours 59 minutes`: the two largest units, rounded down. Milliseconds. */
export function readableSpan(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000));
  const first = Math.max(0, spans.findIndex(([, length]) => seconds >= length));
  if (seconds === 0) return 'less than a second';
  let left = seconds;
  return spans.slice(first, first + 2).flatMap(([name, length]) => {
    const count = Math.floor(left / length);
    left %= length;
    return count === 0 ? [] : [`${count} ${name}${count === 1 ? '' : 's'}`];
  }).join(' ');
}

/** A moment as `<time>`, in UTC. */
export function moment(iso: string): Html {
  const date = new Date(iso);
  const text = date.toLocaleString('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'long', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' });
  return html`<time datetime="${date.toISOString()}">${text} UTC</time>`;
}
