/** The text of a header: it comes as Latin-1, and many servers send UTF-8 where only that was foreseen. */
export function headerText(value: string): string {
  const asUtf8 = Buffer.from(value, 'latin1').toString('utf8');
  return asUtf8.includes('\ufffd') ? value : asUtf8;
}
