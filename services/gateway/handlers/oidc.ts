/** GET /api/owner/oidc/start and /callback: the browser's way to the provider and back. Only the policy service talks to the provider. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { owners } from '../../../shared/contracts/owners.ts';
import type { InputOf } from '../../../shared/contract.ts';
import { parseInput } from '../../../shared/rpc.ts';
import { contextOf, header } from '../context.ts';
import { flowCookie, flowCookieName, readCookie } from '../domain/credential.ts';
import type { MountOptions } from '../mount.ts';
import { cookieOf, signInContext } from './owner-session.ts';

export const startOidc = ({ bus, baseUrl }: MountOptions) =>
  async function startOidc(request: FastifyRequest, reply: FastifyReply) {
    const { location, flow, seconds } = await bus.call(owners.startOidc, {}, contextOf(request, owners.startOidc, baseUrl));
    return reply.code(302).header('Set-Cookie', flowCookie(baseUrl, flow, seconds)).header('Location', location).send();
  };

/** What of the provider's answer is looked at; providers add parameters of their own. */
const known = ['code', 'state', 'iss', 'error'] as const;

export const finishOidc = ({ bus, baseUrl }: MountOptions) =>
  async function finishOidc(request: FastifyRequest, reply: FastifyReply) {
    const query = request.query as Record<string, unknown>;
    const flow = readCookie(header(request, 'cookie') ?? '', flowCookieName(baseUrl));
    // Whatever comes of it, this sign-in does not come back again.
    if (flow !== undefined) void reply.header('Set-Cookie', flowCookie(baseUrl, '', 0));
    const given = Object.fromEntries(known.flatMap((name) => (query[name] === undefined ? [] : [[name, query[name]]])));
    const input = parseInput(owners.finishOidc, { ...given, ...(flow && { flow }) }) as InputOf<typeof owners.finishOidc>;
    const session = await bus.call(owners.finishOidc, input, signInContext(request, baseUrl));
    return reply.code(302).header('Set-Cookie', cookieOf(session, baseUrl)).header('Location', '/').send();
  };
