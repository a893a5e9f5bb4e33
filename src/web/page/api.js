// @ts-check
import { openKeyValueStore } from "./kv.js";

/**
 * The control API, as the page calls it.
 *
 * @typedef {string | number | boolean | readonly string[] | File | undefined} Parameter
 * @typedef {Record<string, Parameter>} Parameters
 * @typedef {"full" | "read-only"} Rights
 */

/** `routes/errors.ts` has the same numbers. */
const ACCESS_DENIED = 0;
const TOKEN_REQUIRED = 104;
const WRONG_TOKEN = 105;

const STORE = "sluice";
const TOKEN_KEY = "access-token";
const TOKEN = /^[\x21-\x7e]{8,512}$/;

/** The engine said no, or nothing; its message is for the user. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} code as in docs/errors.md; -1 where the engine did not answer at all
   */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** Calls control methods, with the access token where it has one. */
export class EngineApi {
  /** @type {string | undefined} */
  #token;

  /** Whether this page is open on the engine's own computer: only there is the token told, and are doors opened. */
  isAtHome = false;

  /**
   * Finds out what may be done from here: on the engine's own computer everything, elsewhere what a token allows that was
   * given to this browser before.
   *
   * @returns {Promise<Rights>}
   */
  async enter() {
    try {
      this.#token = (await request("get_api_access_token", {})).token;
      this.isAtHome = true;
      return "full";
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== ACCESS_DENIED) throw error;
    }
    const kept = await keptToken().catch(() => undefined);
    return kept !== undefined && (await this.#isGood(kept)) ? "full" : "read-only";
  }

  /**
   * Takes a token that the user gives, and keeps it in this browser where it is good; throws where it is not.
   *
   * @param {string} token
   */
  async useToken(token) {
    const given = token.trim();
    if (!TOKEN.test(given) || !(await this.#isGood(given)))
      throw new Error("This token is not the engine's. Copy it again on the engine's own computer.");
    // A browser that keeps nothing is asked for it at the next visit again.
    await keepToken(given).catch(() => {});
  }

  /** Forgets the token of this browser. */
  async forgetToken() {
    this.#token = undefined;
    await keepToken(undefined);
  }

  /** The token, for another device of the same user. */
  get token() {
    return this.#token ?? "";
  }

  /**
   * The result of a method. Files make it an upload.
   *
   * @param {string} method
   * @param {Parameters} [parameters]
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async call(method, parameters = {}, signal) {
    try {
      return await request(method, { token: this.#token, ...parameters }, signal);
    } catch (error) {
      const isOutdated = error instanceof ApiError && error.code === WRONG_TOKEN && this.isAtHome;
      if (!isOutdated) throw error;
    }
    // The token was renewed while this page was open: on the engine's own computer the new one is there for the asking.
    await this.enter();
    return request(method, { token: this.#token, ...parameters }, signal);
  }

  /** @param {string} token */
  async #isGood(token) {
    try {
      await request("playlist_get", { token, limit: 0 });
    } catch (error) {
      if (error instanceof ApiError && [WRONG_TOKEN, TOKEN_REQUIRED, ACCESS_DENIED].includes(error.code))
        return false;
      throw error;
    }
    this.#token = token;
    return true;
  }
}

/**
 * What went wrong, in words for the user.
 *
 * @param {unknown} error
 */
export function problemText(error) {
  if (error instanceof TypeError) return "The engine does not answer. Is it still running?";
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.code === ACCESS_DENIED && /^access denied/i.test(error.message))
    return "The engine allows this only on its own computer.";
  if (error.code === TOKEN_REQUIRED)
    return "This is for the engine's own computer, or for who has its access token.";
  if (error.code === WRONG_TOKEN)
    return "The engine's access token has changed. Load this page again, and give the new token.";
  return sentence(error.message.slice(0, 500));
}

/**
 * The engine's messages begin with a small letter.
 *
 * @param {string} text
 */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * Parameters go into the body of the request, so that no token is part of an address.
 *
 * @param {string} method
 * @param {Parameters} parameters
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function request(method, parameters, signal) {
  const url = `/server/api?${new URLSearchParams({ api_version: "3", method })}`;
  const response = await fetch(url, { method: "POST", body: bodyOf(parameters), signal: signal ?? null });
  /** @type {{ result?: unknown, error?: { message: string, code: number } | null }} */
  let answer;
  try {
    answer = await response.json();
  } catch (error) {
    // What was called off is no answer that cannot be read.
    if (signal?.aborted) throw error;
    throw new ApiError(
      `The engine answered ${response.status} and nothing that can be read`,
      response.status,
    );
  }
  if (answer.error) throw new ApiError(answer.error.message, answer.error.code);
  return answer.result;
}

/** @param {Parameters} parameters */
function bodyOf(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
  if (!given.some(([, value]) => value instanceof File))
    return new URLSearchParams(given.map(([name, value]) => [name, textOf(value)]));
  const form = new FormData();
  for (const [name, value] of given) form.append(name, value instanceof File ? value : textOf(value));
  return form;
}

/** @param {Parameter} value */
function textOf(value) {
  if (typeof value === "boolean") return value ? "1" : "0";
  return Array.isArray(value) ? JSON.stringify(value) : String(value);
}

async function keptToken() {
  const records = await openKeyValueStore(STORE);
  try {
    const token = await records.get(TOKEN_KEY);
    return typeof token === "string" ? token : undefined;
  } finally {
    await records.close();
  }
}

/** @param {string | undefined} token */
async function keepToken(token) {
  const records = await openKeyValueStore(STORE);
  try {
    await records.commit(token === undefined ? { delete: [TOKEN_KEY] } : { set: [[TOKEN_KEY, token]] });
  } finally {
    await records.close();
  }
}
