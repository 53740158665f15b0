/** An installation as a client sees it. */
export type Connection = {
  /** Origin of the one port, e.g. `https://sandboxes.example.com`. */
  url: string;
  apiKey: string;
  /** The domain that sandboxes have hosts of, with a port where it is not the usual one. */
  domain: string;
};

/**
 * The installation that commands are for: the one of the environment, of the login, or of this machine. Fails with
 * `unavailable`.
 */
export type Connect = () => Connection;

/** Keeps what `atoll login` was told, for this user alone. */
export type SavedLogin = { save(connection: Connection): string; forget(): boolean };
