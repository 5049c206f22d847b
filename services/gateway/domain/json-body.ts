/** JSON as it comes from outside: UTF-8 without tricks, or a clear refusal. */
import { failField } from '../../../shared/errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

type Reviver = (key: string, value: unknown, context: { readonly source: string }) => unknown;

/** Node has both halves of the JSON source text proposal; TypeScript does not know them yet. */
const sourceJson = JSON as unknown as { parse(text: string, reviver?: Reviver): unknown; rawJSON(text: string): object; isRawJSON(value: unknown): boolean };

/** Refuses the one key that JavaScript treats as more than a name. */
const refuseProto: Reviver = (key, value) => {
  if (key === '__proto__') throw failField('__proto__', 'unknown field');
  return value;
};

/** Keeps a number that JavaScript would change as the text it came as; JSON.stringify writes that text again. */
const keepNumber: Reviver = (_key, value, { source }) => (typeof value === 'number' && !isSameNumber(source, value) ? sourceJson.rawJSON(source) : value);

/** Whether a value of `exactNumbers` is a number that JavaScript would change. */
export function isKeptNumber(value: unknown): boolean {
  return sourceJson.isRawJSON(value);
}

/** What only the careful, slower parse gets right. A key may be spelt with escapes, so both spellings count. */
const dangerousKey = /__proto__|\\u005/;
const changingNumber = /[\d.]{16}|\d[eE]|-0/;

/**
 * Parses a JSON body. Of a key that stands twice the last one counts (RFC 8259 leaves it open; there is one parser here).
 * With `exactNumbers`, a number that does not fit into JavaScript's comes as an object that JSON.stringify writes as it was.
 * @throws invalid_request
 */
export function parseJson(bytes: Buffer, { exactNumbers = false } = {}): unknown {
  const text = decodeUtf8(bytes);
  if (text.startsWith('\ufeff')) throw failField('body', 'must not begin with a byte order mark');
  const careful = [
    ...(dangerousKey.test(text) ? [refuseProto] : []),
    ...(exactNumbers && changingNumber.test(text) ? [keepNumber] : []),
  ];
  return parseWith(text, careful);
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw failField('body', 'must be UTF-8');
  }
}

function parseWith(text: string, revivers: readonly Reviver[]): unknown {
  const reviver: Reviver | undefined = revivers.length === 0 ? undefined : (key, value, context) => revivers.reduce((revived, revive) => revive(key, revived, context), value);
  try {
    return sourceJson.parse(text, reviver);
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) throw failField('body', 'must be valid JSON');
    throw error;
  }
}

/** A double holds any number of this many digits, unless it is smaller than this. */
const safeDigits = 15;
const smallestSafe = 1e-290;
/** A longer number is kept as it came, without a look at its zeros. */
const longestLooked = 40;

/** Whether a number says the same as its text: 1e2 and 100 do, 9007199254740993 and its nearest double do not. */
function isSameNumber(source: string, value: number): boolean {
  if (value === 0) return /^0[.0]*(?:e|$)/i.test(source);
  if (!Number.isFinite(value) || source.length > longestLooked) return false;
  return (source.length <= safeDigits && Math.abs(value) >= smallestSafe) || decimal(source) === decimal(String(value));
}

/** A number's one spelling: its digits without zeros around them, and a power of ten. */
function decimal(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  return `${sign}${short}e${Number(exponent) - fraction.length + digits.length - short.length}`;
}
