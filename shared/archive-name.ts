/** Names inside of archives: whatever a sender calls a file, it unpacks below the folder it is unpacked in, on every system (interface chapter: Folders). */

/** What ends a name, leaves a folder, is refused by Windows, or turns the direction of what is read. */
// eslint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u001f\u007f-\u009f\\:*?"<>|\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Names that Windows takes for devices, with any ending. */
const device = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ ]*(\.|$)/i;

/**
 * The name that a path has in an archive: relative, with no step upwards, no device and no character that some system refuses.
 * A name that is safe stays as it is, so that making it safe once more changes nothing.
 */
export function archiveName(path: string): string {
  const segments = path.toWellFormed().normalize('NFC').replace(unsafe, '_').split('/').filter((segment) => segment !== '' && segment !== '.');
  return segments.map(safeSegment).join('/') || '_';
}

function safeSegment(segment: string): string {
  // Windows drops these, and then two names are one.
  const whole = segment.replace(/[. ]+$/, (end) => '_'.repeat(end.length));
  return device.test(whole) ? `_${whole}` : whole;
}

/** What two names have in common that are one file where case does not count. */
export function nameKey(name: string): string {
  return name.toUpperCase().toLowerCase().normalize('NFC');
}
