/** Markup as tagged templates: whatever is put into `html` is escaped, unless `html` itself made it. */

const markup = Symbol('markup');

/** A piece of finished markup. Only `html` makes one: text, and JSON from outside, can never pass for it. */
export interface Html {
  readonly [markup]: string;
}

/** What a template takes. `undefined`, `null` and `false` are nothing; arrays are their items in a row. */
export type Content = Html | string | number | undefined | null | false | readonly Content[];

export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  const text = strings.reduce((done, string, index) => done + render(values[index - 1]) + string);
  return { [markup]: text };
}

/** The finished text of a piece of markup. */
export function toText(content: Html): string {
  return content[markup];
}

function render(content: Content): string {
  if (content === undefined || content === null || content === false) return '';
  if (typeof content === 'string') return escape(content);
  if (typeof content === 'number') return String(content);
  if (isList(content)) return content.map(render).join('');
  return content[markup];
}

function isList(content: Html | readonly Content[]): content is readonly Content[] {
  return Array.isArray(content);
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;', '`': '&#96;' };

function escape(text: string): string {
  return text.replace(/[&<>"'`]/g, (character) => entities[character]!);
}

/** Text in which `backticks` mark code. */
export function prose(text: string): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}
