/** Agents and their root keys, of which only the hash is kept. */
import type { Database, Sql } from '../../../shared/db.ts';
import type { DomainEvent } from '../../../shared/events.ts';
import { withAnswer, type SealedAnswer } from './answers.ts';

export interface AgentKey {
  readonly keyId: string;
  readonly agentId: string;
  readonly ownerId: string;
  readonly name: string | null;
  readonly secretHash: string;
  readonly createdAt: Date;
  readonly revokedAt: Date | null;
}

export function agentKeysStore(database: Database) {
  return {
    /** Makes a key, and its agent when it is new. Answers false when the agent id belongs to another owner. */
    async createKey(key: Pick<AgentKey, 'keyId' | 'agentId' | 'ownerId' | 'name' | 'secretHash'>, event: DomainEvent, sealed?: SealedAnswer): Promise<boolean> {
      const rows = await database.run((sql) => sql`
        with agent as (
          insert into agents (agent_id, owner_id) values (${key.agentId}, ${key.ownerId})
          -- Touches the row so that an agent of the same owner is returned; another owner's is not.
          on conflict (agent_id) do update set agent_id = excluded.agent_id where agents.owner_id = excluded.owner_id
          returning agent_id
        ), made as (
          insert into agent_keys (key_id, agent_id, owner_id, name, secret_hash)
          select ${key.keyId}::text, agent_id, ${key.ownerId}::text, ${key.name}::text, ${key.secretHash}::text from agent
          returning key_id
        ), told as (
          insert into outbox (id, event) select ${event.id}::uuid, ${sql.json(event as never)}::jsonb from made
        )${withAnswer(sql, sealed, 'made')}
        select key_id from made`);
      return rows.length > 0;
    },

    async findKey(keyId: string): Promise<AgentKey | undefined> {
      const rows = await database.run((sql) => sql<AgentKey[]>`
        select ${keyColumns(sql)} from agent_keys where key_id = ${keyId}`);
      return rows[0];
    },

    async listKeys(ownerId: string, filter: { limit: number; agentId?: string | undefined }): Promise<AgentKey[]> {
      return database.run((sql) => sql<AgentKey[]>`
        select ${keyColumns(sql)} from agent_keys
        where owner_id = ${ownerId} ${filter.agentId ? sql`and agent_id = ${filter.agentId}` : sql``}
        order by created_at desc, key_id limit ${filter.limit}`);
    },

    /** Revokes a key of this owner. One that was revoked before stays as it was. */
    async revokeKey(keyId: string, ownerId: string, event: DomainEvent): Promise<void> {
      await database.run((sql) => sql`
        with revoked as (
          update agent_keys set revoked_at = now()
          where key_id = ${keyId} and owner_id = ${ownerId} and revoked_at is null
          returning agent_id
        )
        insert into outbox (id, event)
        select ${event.id}::uuid, ${sql.json(event as never)}::jsonb || jsonb_build_object('agentId', agent_id) from revoked`);
    },
  };
}

const keyColumns = (sql: Sql) => sql`
  key_id as "keyId", agent_id as "agentId", owner_id as "ownerId", name,
  secret_hash as "secretHash", created_at as "createdAt", revoked_at as "revokedAt"`;
