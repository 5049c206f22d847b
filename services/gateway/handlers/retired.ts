/** The retired upload surfaces: every method answers 410 and says where to go (interface chapter: Endpoints, Retirement). */
import { fail, type Failure } from '../../../shared/errors.ts';

const surfaces = ['/api/upload', '/api/tus'];

/** Whether a path that no route serves belongs to a retired surface. The multipart lane below /api/upload is alive and has routes. */
export function isRetired(path: string): boolean {
  return surfaces.some((surface) => path === surface || path.startsWith(`${surface}/`));
}

export function retired(baseUrl: string): Failure {
  return fail('transfer_surface_retired', {
    detail: `This upload surface is retired. Ask for a plan with POST ${baseUrl}/api/transfer-plan and send the bytes to the upload.url of its answer.`,
    see: { plan: `POST ${baseUrl}/api/transfer-plan`, docs: `${baseUrl}/docs/planned-upload` },
  });
}
