/** What the parser of forms throws, in our codes. */
import { failField } from '../../shared/errors.ts';

/** What the parser throws is the sender's to mend: plain errors and codes of its own. Anything else goes on as it is. */
export function nameBadForm(expected: string) {
  return (error: unknown): never => {
    const { name, code, message } = error as { name?: string; code?: unknown; message?: string };
    const isOfParser = typeof code === 'string' ? code.startsWith('FST_') : code === undefined && name === 'Error';
    throw isOfParser ? failField('body', `must be ${expected} (${message})`) : error;
  };
}
