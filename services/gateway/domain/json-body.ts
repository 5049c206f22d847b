/** JSON as it comes from outside: UTF-8 without tricks, or a clear refusal. */
import { failField } from '../../../shared/errors.ts';

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Refuses the one key that JavaScript treats as more than a name. */
function refuseProto(key: string, value: unknown): unknown {
  if (key === '__proto__') throw failField('__proto__', 'unknown field');
  return value;
}

/**
 * Parses a JSON body. Of a key that stands twice the last one counts (RFC 8259 leaves it open; there is one parser here).
 * @throws invalid_request
 */
export function parseJson(bytes: Buffer): unknown {
  const text = decodeUtf8(bytes);
  if (text.startsWith('\ufeff')) throw failField('body', 'must not begin with a byte order mark');
  // A key may be spelt with escapes, so both spellings ask for the slower, careful parse.
  const suspicious = text.includes('__proto__') || text.includes('\\u005');
  return suspicious ? parseWith(text, refuseProto) : parseWith(text);
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw failField('body', 'must be UTF-8');
  }
}

function parseWith(text: string, reviver?: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver) as unknown;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) throw failField('body', 'must be valid JSON');
    throw error;
  }
}
