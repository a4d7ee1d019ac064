// Users, agents and who may see which, made by LibreChat's own functions.

import { randomBytes } from 'node:crypto';

import jwt from 'jsonwebtoken';

/** `PermissionBits` of librechat-data-provider: what an editor of an agent has. */
export const VIEW = 1;
export const EDIT = 2;

export function peopleOf({ mongoose, methods }) {
  const { ObjectId } = mongoose.mongo;
  let made = 0;

  return {
    /** The roles USER and ADMIN and the access roles, as the server seeds them when it starts. */
    async seedRoles() {
      await methods.initializeRoles();
      await methods.seedDefaultRoles();
    },

    /** Makes a user and answers with its document. */
    async user({ name, role = 'USER', ...rest } = {}) {
      const username = name ?? `user${++made}`;
      const email = `${username.toLowerCase()}.${new ObjectId()}@example.org`;
      const data = { provider: 'local', name: username, username, email, emailVerified: true, role, ...rest };
      return methods.createUser(data, undefined, true, true);
    },

    /** Makes an agent and answers with its document; nobody may see it yet but an administrator. */
    async agent({ name, author, ...rest }) {
      // As long as LibreChat's own, and readable.
      const tail = `${name.replace(/\W/g, '')}_${randomBytes(18).toString('base64url')}`.slice(0, 21);
      const id = rest.id ?? `agent_${tail}`;
      const agent = { provider: 'openAI', model: 'gpt-4o', ...rest, id, name, author: new ObjectId(author) };
      return methods.createAgent(agent);
    },

    /** A token with any claims, algorithm and secret, made by the library that LibreChat has. */
    async token({ claims, algorithm = 'HS256', secret = process.env.JWT_SECRET }) {
      return jwt.sign(claims, algorithm === 'none' ? null : secret, { algorithm, noTimestamp: true });
    },

    /** Lets a user, a group, a role or everybody see an agent. */
    async grant({ agent, type = 'user', id = null, bits = VIEW, grantedBy }) {
      const { _id } = await methods.getAgent({ id: agent });
      return methods.grantPermission(type, id, 'agent', _id, bits, grantedBy ?? new ObjectId());
    },
  };
}
