/** The pages people see: a share, the documentation, the explanation of each error. They spend nothing and load nothing from elsewhere. */
import { readFileSync } from 'node:fs';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { shareId as shareIdSchema } from '../../../shared/contracts/fields.ts';
import { shares } from '../../../shared/contracts/shares.ts';
import { errorTable, Failure, isErrorCode } from '../../../shared/errors.ts';
import { docsPage } from '../../../web/docs-page.ts';
import { errorPage } from '../../../web/error-page.ts';
import { homePage } from '../../../web/home-page.ts';
import { plannedUploadPage } from '../../../web/planned-upload-page.ts';
import { problemPage, problemsIndexPage } from '../../../web/problem-page.ts';
import { goneSharePage, sharePage } from '../../../web/share-page.ts';
import { contextOf } from '../context.ts';
import type { MountOptions } from '../mount.ts';
import { toFailure } from '../problem.ts';

const pagePolicy = [
  "default-src 'none'", "style-src 'self'", "script-src 'self'", "img-src 'self' data:",
  "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'",
].join('; ');

/** The page of a share with a passcode fetches it by script: a form cannot send a header. */
const fetchingPagePolicy = `${pagePolicy}; connect-src 'self'`;

const assets = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'favicon.svg': 'image/svg+xml',
} as const;

const assetFolder = new URL('../../../web/assets/', import.meta.url);

export function mountPages(app: FastifyInstance, { bus, baseUrl, openapi }: MountOptions & { openapi: object }): void {
  const docs = docsPage({ baseUrl, openapi });
  const fixed: Record<string, string> = {
    '/': homePage({ baseUrl }),
    '/docs': docs,
    '/docs/planned-upload': plannedUploadPage({ baseUrl }),
    '/problems': problemsIndexPage({ baseUrl }),
  };
  for (const [path, page] of Object.entries(fixed)) app.get(path, async (_request, reply) => sendPage(reply, 200, page));

  app.get<{ Params: { code: string } }>('/problems/:code', async ({ params, id }, reply) =>
    isErrorCode(params.code)
      ? sendPage(reply, 200, problemPage({ code: params.code, entry: errorTable[params.code], baseUrl }))
      : sendPage(reply, 404, errorPage({ code: 'route_not_found', baseUrl, requestId: id })));

  app.get<{ Params: { shareId: string } }>('/s/:shareId', async (request, reply) => {
    const { shareId } = request.params;
    if (!shareIdSchema.safeParse(shareId).success) return sendPage(reply, 404, goneSharePage({ baseUrl }));
    try {
      const share = await bus.call(shares.describeShare, { shareId }, contextOf(request, { accepts: [] }, baseUrl));
      return sendPage(reply, 200, sharePage({ share, baseUrl, now: Date.now() }), share.passcodeRequired ? fetchingPagePolicy : pagePolicy);
    } catch (error) {
      return sendFailurePage(reply, toFailure(error), baseUrl);
    }
  });

  for (const [name, type] of Object.entries(assets)) {
    const bytes = readFileSync(new URL(name, assetFolder));
    app.get(`/assets/${name}`, async (_request, reply) =>
      reply.header('Content-Type', type).header('Cache-Control', 'public, max-age=3600').send(bytes));
  }
}

function sendFailurePage(reply: FastifyReply, failure: Failure, baseUrl: string): FastifyReply {
  if (failure.code === 'share_not_found_or_expired') return sendPage(reply, 404, goneSharePage({ baseUrl }));
  const { code, details } = failure;
  if (code === 'internal') reply.log.error({ err: failure.cause }, 'a page failed');
  return sendPage(reply, errorTable[code].status, errorPage({ code, baseUrl, detail: details.detail, requestId: reply.request.id }));
}

function sendPage(reply: FastifyReply, status: number, page: string, policy = pagePolicy): FastifyReply {
  return reply
    .code(status)
    .header('Content-Type', 'text/html; charset=utf-8')
    .header('Content-Security-Policy', policy)
    .send(page);
}
