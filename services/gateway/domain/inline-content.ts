/** What of a transfer can be told in a message: text and JSON, when their bytes are what their type says. */
import { parseJson } from './json-body.ts';

/** Deeper JSON is told as text: not everybody on its way could read it as a value. */
const deepest = 100;

const isJson = (mimeType: string) => /^application\/([\w.-]+\+)?json(;|$)/i.test(mimeType);

/** Whether a transfer of this type can be told at all. */
export function isInlineType(mimeType: string): boolean {
  return /^text\//i.test(mimeType) || isJson(mimeType);
}

export type InlineContent = { readonly text: string } | { readonly json: unknown };

/** The bytes as what their type says. JSON that cannot be told as a value is told as text; undefined for bytes that are no text. */
export function inlineContent(bytes: Buffer, mimeType: string): InlineContent | undefined {
  if (isJson(mimeType)) {
    const json = asJson(bytes);
    if (json !== undefined) return { json };
  }
  const text = decode(bytes, /;\s*charset="?([^";]+)/i.exec(mimeType)?.[1] ?? 'utf-8');
  return text === undefined ? undefined : { text };
}

function asJson(bytes: Buffer): unknown {
  try {
    const value = parseJson(bytes, { exactNumbers: true });
    return isNestedWithin(value, deepest) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isNestedWithin(inner, levels - 1));
}

function decode(bytes: Buffer, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
