/** Text never becomes markup by itself. */
import { describe, expect, test } from 'vitest';
import { html, prose, toText } from './html.ts';

describe('html', () => {
  test('escapes text in elements and in attributes of either quote', () => {
    expect(toText(html`<p title="${'"\'`'}">${'<b>&'}</p>`)).toBe('<p title="&quot;&#39;&#96;">&lt;b&gt;&amp;</p>');
  });

  test('keeps nested markup, lists and numbers, and leaves out what is nothing', () => {
    expect(toText(html`${[html`<i>${'<'}</i>`, '<', 7]}${undefined}${null}${false}${''}`)).toBe('<i>&lt;</i>&lt;7');
  });

  test('JSON from outside cannot pass for markup', () => {
    const forged = JSON.parse('{"markup":"<script>","Symbol(markup)":"<script>"}') as never;
    expect(toText(html`${forged}`)).not.toContain('<script>');
  });

  test('backticks in prose mark code, which is escaped too', () => {
    expect(toText(prose('Send `<key>` & go'))).toBe('Send <code>&lt;key&gt;</code> &amp; go');
  });
});
