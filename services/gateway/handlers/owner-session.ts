/** POST and DELETE /api/owner/session: the policy service opens and ends sessions, the cookie is set here. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { owners } from '../../../shared/contracts/owners.ts';
import { parseInput } from '../../../shared/rpc.ts';
import type { InputOf } from '../../../shared/contract.ts';
import { contextOf, header, requireSameOrigin } from '../context.ts';
import { sessionCookie } from '../domain/credential.ts';
import { readInput, type MountOptions } from '../mount.ts';

export const openSession = ({ bus, baseUrl }: MountOptions) =>
  async function openSession(request: FastifyRequest, reply: FastifyReply) {
    // Another site must not sign a visitor in to an account of its own; a script sends neither header.
    if (header(request, 'origin') !== undefined || header(request, 'sec-fetch-site') !== undefined) requireSameOrigin(request, baseUrl);
    const input = parseInput(owners.signIn, readInput(request, owners.signIn)) as InputOf<typeof owners.signIn>;
    const session = await bus.call(owners.signIn, input, contextOf(request, owners.signIn, baseUrl));
    const seconds = Math.max(0, Math.floor((Date.parse(session.expiresAt) - Date.now()) / 1_000));
    return reply.code(201).header('Set-Cookie', sessionCookie(baseUrl, session.token, seconds)).send(session);
  };

export const closeSession = ({ bus, baseUrl }: MountOptions) =>
  async function closeSession(request: FastifyRequest, reply: FastifyReply) {
    const answer = await bus.call(owners.signOut, {}, contextOf(request, owners.signOut, baseUrl));
    return reply.header('Set-Cookie', sessionCookie(baseUrl, '', 0)).send(answer);
  };
