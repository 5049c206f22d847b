/** What the TUS server refuses by itself, in our codes. */
import { fail, failField, type Failure } from '../../../shared/errors.ts';

/** @param said what it says to a person */
export function nameTusError(status: number, said: string): Failure {
  switch (status) {
    case 409: return fail('upload_offset_mismatch');
    case 410: return fail('upload_expired');
    case 404: return fail('multipart_upload_not_found');
    case 413: return fail('payload_too_large', { detail: 'Upload-Length: more bytes came than were announced.' });
    case 500: return fail('internal', {}, new Error(said));
    // Upload-Offset, Upload-Length and Upload-Metadata: absent, twice, or not what they must be.
    default: return failField('headers', said.trim());
  }
}
