/** GET /api/audit: a page as JSON, or everything that matches as a stream of lines (interface chapter: Audit). */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { InputOf } from '../../../shared/contract.ts';
import { audit, exportType } from '../../../shared/contracts/audit.ts';
import { failField } from '../../../shared/errors.ts';
import { parseInput } from '../../../shared/rpc.ts';
import { contextOf } from '../context.ts';
import { linesOf } from '../lines.ts';
import { readInput, type MountOptions } from '../mount.ts';

/** Events that are asked for at once. No more than these are held in memory for one export. */
const exportLimit = 100;

export const queryAudit = ({ bus, baseUrl }: MountOptions) =>
  async function queryAudit(request: FastifyRequest, reply: FastifyReply) {
    const { queryAudit: contract } = audit;
    const given = readInput(request, contract) as object;
    const input = parseInput(contract, given) as InputOf<typeof contract>;
    const context = contextOf(request, contract, baseUrl);
    if (input.format !== 'ndjson') {
      const answer = await bus.callRaw(contract, input, context);
      return reply.type('application/json; charset=utf-8').send(answer.json);
    }
    for (const name of ['limit', 'cursor']) {
      if (name in given) throw failField(name, 'belongs to a page: an export has everything that matches; bound it by from and to');
    }
    // Each page is a request of its own with its own deadline, so a session that ends also ends its export.
    const ask = async (cursor?: string) => {
      const { events, nextCursor } = await bus.call(contract, { ...input, limit: exportLimit, cursor }, context);
      return { items: events, next: nextCursor };
    };
    // What is wrong from the start is still an error answer.
    const lines = linesOf(await ask(), ask);
    return reply
      .header('Content-Disposition', 'attachment; filename="audit.ndjson"')
      .type(exportType)
      .send(Readable.from(lines, { objectMode: false, highWaterMark: 1 }));
  };
