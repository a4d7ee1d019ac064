export interface BatonOptions {
  /** Where Baton is, such as `https://chat.example.org`; the page's own origin by default. */
  url?: string;
  /** LibreChat's token of the user, asked for before each request. */
  token?: () => string | undefined | Promise<string | undefined>;
  /** The tool's name; `switch_agent` by default. */
  tool?: string;
  /** The MCP servers whose tool counts; any by default. */
  servers?: string[] | null;
  /** How often PATCH is tried; 6 by default. */
  attempts?: number;
  /** In place of the browser's own. */
  fetch?: typeof fetch;
}

export interface ActiveChange {
  conversationId: string;
  agentId: string;
  previousAgentId: string | undefined;
  /** `switch`: an agent handed over, and it is permanent. `page`: by `setActive`. */
  reason: 'switch' | 'page';
}

export interface ServerEvent {
  event: string;
  /** Parsed where it is JSON, else the text. */
  data: unknown;
  id: string | undefined;
}

export class BatonError extends Error {
  /** The HTTP status; none where Baton was not reached. */
  readonly status: number | undefined;
}

export class Baton {
  constructor(options?: BatonOptions);
  activeAgent(conversationId: string): string | undefined;
  onActive(listener: (change: ActiveChange) => void): () => void;
  setActive(conversationId: string, agentId: string): void;
  /**
   * Yields a turn's events. Throws a `BatonError` after the last one where the turn switched and
   * that could not be made permanent.
   */
  events(
    response: Response,
    options?: { conversationId?: string; signal?: AbortSignal },
  ): AsyncGenerator<ServerEvent, void, undefined>;
  makePermanent(
    conversationId: string,
    agentId: string,
    options?: { signal?: AbortSignal },
  ): Promise<void>;
}

export function readEvents(response: Response): AsyncGenerator<ServerEvent, void, undefined>;
