// @ts-check
/**
 * Where the user stopped watching films, which the engine keeps, so that every device continues there.
 *
 * @typedef {{ infohash: string, file_index: number, title: string, link: string, position: number, duration: number }} WatchedFilm
 */

/** The position is stored in this interval while a film plays. */
const SAVE_MS = 15_000;
/** Shorter films, and the first seconds of others, are not continued. */
const MIN_SECONDS = 30;
/** A film whose rest is shorter than this part of it is finished: the credits. */
const END_SHARE = 0.04;

/** Stores the position of the played film, and lists the films that the user can continue. */
export class Resume {
  #api;
  #video;
  /** The film that plays. @type {Omit<WatchedFilm, "position" | "duration"> | undefined} */
  #film;
  #savedAt = 0;
  /** The profile whose films these are; empty for the one without a name. */
  profile = "";

  /**
   * @param {import("../parts/api.js").EngineApi} api
   * @param {HTMLVideoElement} video
   */
  constructor(api, video) {
    this.#api = api;
    this.#video = video;
    video.addEventListener("timeupdate", () => {
      if (Date.now() - this.#savedAt > SAVE_MS) this.#save();
    });
    video.addEventListener("pause", () => this.#save());
    video.addEventListener("ended", () => this.#forget());
  }

  /** @param {Omit<WatchedFilm, "position" | "duration"> | undefined} film undefined for a live stream */
  follow(film) {
    this.#film = film;
    this.#savedAt = Date.now();
  }

  /** Stores the position for the last time. */
  leave() {
    this.#save();
    this.#film = undefined;
  }

  /**
   * Returns where the user stopped in a film, in seconds; 0 for the start.
   *
   * @param {string} infohash
   * @param {number} fileIndex
   */
  async positionOf(infohash, fileIndex) {
    const films = await this.list();
    const film = films.find((each) => each.infohash === infohash && each.file_index === fileIndex);
    return film?.position ?? 0;
  }

  /**
   * Returns the films that the user can continue, the latest first; none on a page without the access token.
   *
   * @returns {Promise<WatchedFilm[]>}
   */
  async list() {
    return this.#api.call("watched_get_list", { profile: this.profile }).catch(() => []);
  }

  /**
   * Returns the names of the profiles that have begun a film.
   *
   * @returns {Promise<string[]>}
   */
  profiles() {
    return this.#api.call("watched_get_profiles");
  }

  /** @param {WatchedFilm} film */
  async forget({ infohash, file_index }) {
    await this.#api.call("watched_delete", { profile: this.profile, infohash, file_index }).catch(() => {});
  }

  #save() {
    const film = this.#film;
    const { currentTime: position, duration } = this.#video;
    if (!film || !Number.isFinite(duration) || duration < 2 * MIN_SECONDS || position < MIN_SECONDS) return;
    this.#savedAt = Date.now();
    if (position > duration * (1 - END_SHARE)) this.#forget();
    // Without the access token the position is not kept.
    else
      this.#api.call("watched_set", { profile: this.profile, ...film, position, duration }).catch(() => {});
  }

  #forget() {
    const film = this.#film;
    if (film) this.forget({ ...film, position: 0, duration: 0 });
  }
}
