/** File names of strangers: shown so that nothing in them is hidden, and saved so that nothing in them is a command. */

/**
 * Characters that are not seen, or that change how their neighbours are seen: controls, bidirectional marks, zero-width and tag
 * characters, fillers, unusual spaces, private and lone surrogate code points, and more than four marks on one letter.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|(?<=\p{M}{4})\p{M}/gu;

/** Joiners inside of a single emoji are seen, as that emoji. */
const emoji = /\p{Extended_Pictographic}\ufe0f?(?:\u200d\p{Extended_Pictographic}\ufe0f?)+|\p{Extended_Pictographic}\ufe0f/gu;

/** The name with every unseen character written out, such as `‹U+202E›`. */
export function showName(name: string): string {
  return betweenEmoji(name, (text) => text.replace(unseen, (character) => `‹U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}›`));
}

/** A name to save the file under: no unseen characters, no path, and nothing in front that a program could take for an option, a formula or a hidden file. */
export function savedName(name: string): string {
  const plain = betweenEmoji(name, (text) => text.replace(unseen, '_')).replace(/[/\\]/g, '_').trim();
  return plain.replace(/^[-=.~+@%#]/, '_').replace(/[. ]+$/, '') || 'download';
}

/** One word of a POSIX shell, whatever is in it. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function betweenEmoji(name: string, change: (text: string) => string): string {
  let changed = '';
  let from = 0;
  for (const match of name.matchAll(emoji)) {
    changed += change(name.slice(from, match.index)) + match[0];
    from = match.index + match[0].length;
  }
  return changed + change(name.slice(from));
}
