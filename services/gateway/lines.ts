/** A walk over pages as newline-delimited JSON, one page a chunk. */

export interface Page {
  readonly items: readonly unknown[];
  /** Where the next page begins; null after the last. */
  readonly next: string | null;
}

/** Asks for a page only when the one before was taken, and for none after whoever reads has left. Throws what asking throws. */
export async function* linesOf(first: Page, ask: (cursor: string) => Promise<Page>): AsyncGenerator<string> {
  for (let page = first; ; page = await ask(page.next)) {
    if (page.items.length > 0) yield page.items.map((item) => `${JSON.stringify(item)}\n`).join('');
    if (page.next === null) return;
  }
}
