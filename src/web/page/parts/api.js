// @ts-check
import { rememberedToken, rememberToken } from "./memory.js";
import { t } from "./text.js";

/**
 * Types of the control API client.
 *
 * @typedef {string | number | boolean | readonly string[] | File | undefined} Parameter a list is sent as a repeated parameter
 * @typedef {Record<string, Parameter>} Parameters
 * @typedef {"full" | "read-only"} Rights
 */

/** Error codes, the same as in `routes/errors.ts`. */
const ACCESS_DENIED = 0;
const TOKEN_REQUIRED = 104;
const WRONG_TOKEN = 105;

const TOKEN = /^[\x21-\x7e]{8,512}$/;

/** An error response of the engine; its message is shown to the user. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} code a number of docs/errors.md, or the HTTP status if the response is not JSON
   */
  constructor(message, code) {
    super(message);
    this.code = code;
  }
}

/** Calls control methods, with the access token if this browser has one. */
export class EngineApi {
  /** @type {string | undefined} */
  #token;

  /** Whether this page is open on the engine's own computer: only there can it get the token and change access. */
  isLocal = false;

  /**
   * Determines the rights of this page: `full` on the engine's own computer, or if this browser has stored a valid token;
   * else `read-only`.
   *
   * @returns {Promise<Rights>}
   */
  async enter() {
    try {
      this.#token = (await request("get_api_access_token", {})).token;
      this.isLocal = true;
      return "full";
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== ACCESS_DENIED) throw error;
    }
    const stored = await rememberedToken().catch(() => undefined);
    return stored !== undefined && (await this.#isValid(stored)) ? "full" : "read-only";
  }

  /**
   * Checks a token that the user entered, and stores it in this browser. Throws if it is invalid.
   *
   * @param {string} token
   */
  async useToken(token) {
    const trimmed = token.trim();
    if (!TOKEN.test(trimmed) || !(await this.#isValid(trimmed)))
      throw new Error(t("This access token is not valid. Copy it again on the engine's computer."));
    // If the browser cannot store it, the user enters it again at the next visit.
    await rememberToken(trimmed).catch(() => {});
  }

  /** Deletes the token from this browser. */
  async forgetToken() {
    this.#token = undefined;
    await rememberToken(undefined);
  }

  /** The token, which the user can copy to another device; empty if there is none. */
  get token() {
    return this.#token ?? "";
  }

  /**
   * Calls a method and returns its result. Throws `ApiError`, or `TypeError` if the engine does not answer.
   *
   * @param {string} method
   * @param {Parameters} [parameters] files are uploaded
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async call(method, parameters = {}, signal) {
    try {
      return await request(method, { token: this.#token, ...parameters }, signal);
    } catch (error) {
      const isOutdated = error instanceof ApiError && error.code === WRONG_TOKEN && this.isLocal;
      if (!isOutdated) throw error;
    }
    // The token was renewed while this page was open. On the engine's own computer the page can get the new one.
    await this.enter();
    return request(method, { token: this.#token, ...parameters }, signal);
  }

  /**
   * Calls a method that sends a file. Throws like {@link call}, and `TypeError` if the file is incomplete.
   *
   * @param {string} method
   * @param {Parameters} [parameters]
   * @returns {Promise<{ name: string, file: Blob }>}
   */
  async file(method, parameters = {}) {
    const response = await send(method, { token: this.#token, ...parameters });
    if (response.headers.get("content-type")?.startsWith("application/json")) await resultOf(response);
    const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
    return { name: name ?? method, file: await response.blob() };
  }

  /**
   * Sends a file that is larger than a form may be. Throws like {@link call}. Only the engine's own computer may do that, which needs no token.
   *
   * @param {string} path
   * @param {File} file
   * @returns {Promise<any>}
   */
  async upload(path, file) {
    return resultOf(await fetch(path, { method: "POST", body: file }));
  }

  /** @param {string} token */
  async #isValid(token) {
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
 * Converts an error to a message for the user.
 *
 * @param {unknown} error
 */
export function problemText(error) {
  // `fetch` throws a TypeError if the connection fails.
  if (error instanceof TypeError) return t("The engine does not answer. Check that it is still running.");
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.code === ACCESS_DENIED && /^access denied/i.test(error.message))
    return t("This is allowed only on the engine's computer.");
  if (error.code === TOKEN_REQUIRED) return needsToken();
  if (error.code === WRONG_TOKEN)
    return t("The access token has changed. Reload this page and enter the new token.");
  return sentence(error.message.slice(0, 500));
}

/** Returns the message for a page that has no access token. */
export function needsToken() {
  return t(
    "This needs the engine's access token. Open this page on the engine's computer, or enter the token.",
  );
}

/**
 * Capitalizes a message of the engine, which begins with a small letter.
 *
 * @param {string} text
 */
export function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * @param {string} method
 * @param {Parameters} parameters
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function request(method, parameters, signal) {
  return resultOf(await send(method, parameters, signal), signal);
}

/**
 * Sends a request. The parameters are in its body, so that no URL contains the token.
 *
 * @param {string} method
 * @param {Parameters} parameters
 * @param {AbortSignal} [signal]
 */
function send(method, parameters, signal) {
  const url = `server/api?${new URLSearchParams({ api_version: "3", method })}`;
  return fetch(url, { method: "POST", body: bodyOf(parameters), signal: signal ?? null });
}

/**
 * Reads the result of a response. Throws `ApiError`.
 *
 * @param {Response} response
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
async function resultOf(response, signal) {
  /** @type {{ result?: unknown, error?: { message: string, code: number } | null }} */
  let answer;
  try {
    answer = await response.json();
  } catch (error) {
    // An aborted request is not an invalid response.
    if (signal?.aborted) throw error;
    throw new ApiError(
      t("The engine sent an invalid response (status {status})", { status: String(response.status) }),
      response.status,
    );
  }
  if (answer.error) throw new ApiError(answer.error.message, answer.error.code);
  return answer.result;
}

/** @param {Parameters} parameters */
function bodyOf(parameters) {
  /** @type {[name: string, value: string | File][]} */
  const given = [];
  for (const [name, value] of Object.entries(parameters))
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined) given.push([name, each instanceof File ? each : textOf(each)]);
  const form = given.some(([, value]) => value instanceof File) ? new FormData() : new URLSearchParams();
  for (const [name, value] of given) form.append(name, /** @type {string} */ (value));
  return form;
}

/** @param {string | number | boolean} value */
function textOf(value) {
  return typeof value === "boolean" ? String(Number(value)) : String(value);
}
