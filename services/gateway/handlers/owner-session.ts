/** The routes that set the session cookie: the policy service opens and ends sessions, the cookie is set here. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { owners } from '../../../shared/contracts/owners.ts';
import { parseInput, type CallContext } from '../../../shared/rpc.ts';
import type { InputOf } from '../../../shared/contract.ts';
import { contextOf, header, requireSameOrigin } from '../context.ts';
import { readCookie, readToken, sessionCookie, sessionCookieName } from '../domain/credential.ts';
import { readInput, type MountOptions } from '../mount.ts';

/** The context of a sign-in. It needs no credential; the session of a cookie that came with it is ended by it. */
export function signInContext(request: FastifyRequest, baseUrl: string): CallContext {
  const token = readCookie(header(request, 'cookie') ?? '', sessionCookieName(baseUrl));
  return { ...contextOf(request, { accepts: [] }, baseUrl), ...(token && { credential: readToken(token) }) };
}

/** The Set-Cookie header of a session that was opened. */
export function cookieOf(session: { token: string; expiresAt: string }, baseUrl: string): string {
  const seconds = Math.max(0, Math.floor((Date.parse(session.expiresAt) - Date.now()) / 1_000));
  return sessionCookie(baseUrl, session.token, seconds);
}

export const openSession = ({ bus, baseUrl }: MountOptions) =>
  async function openSession(request: FastifyRequest, reply: FastifyReply) {
    // Another site must not sign a visitor in to an account of its own; a script sends neither header.
    if (header(request, 'origin') !== undefined || header(request, 'sec-fetch-site') !== undefined) requireSameOrigin(request, baseUrl);
    const input = parseInput(owners.signIn, readInput(request, owners.signIn)) as InputOf<typeof owners.signIn>;
    const session = await bus.call(owners.signIn, input, signInContext(request, baseUrl));
    return reply.code(201).header('Set-Cookie', cookieOf(session, baseUrl)).send(session);
  };

export const changePassword = ({ bus, baseUrl }: MountOptions) =>
  async function changePassword(request: FastifyRequest, reply: FastifyReply) {
    const context = contextOf(request, owners.changePassword, baseUrl);
    const input = parseInput(owners.changePassword, readInput(request, owners.changePassword)) as InputOf<typeof owners.changePassword>;
    const session = await bus.call(owners.changePassword, input, context);
    return reply.header('Set-Cookie', cookieOf(session, baseUrl)).send(session);
  };

export const closeSession = (options: MountOptions) => closing(owners.signOut, options);
export const closeSessions = (options: MountOptions) => closing(owners.signOutEverywhere, options);

function closing(contract: typeof owners.signOut | typeof owners.signOutEverywhere, { bus, baseUrl }: MountOptions) {
  return async function closeSession(request: FastifyRequest, reply: FastifyReply) {
    const answer = await bus.call(contract, {}, contextOf(request, contract, baseUrl));
    return reply.header('Set-Cookie', sessionCookie(baseUrl, '', 0)).send(answer);
  };
}
