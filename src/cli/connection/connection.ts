/** An installation as a client sees it. */
export type Connection = {
  /** Origin of the one port, e.g. `https://sandboxes.example.com`. */
  url: string;
  apiKey: string;
  /** The domain under which sandboxes have hosts, with a port unless it is the usual one. */
  domain: string;
};

/**
 * The installation that commands use: that of the environment, of the login, or of this machine. Fails with
 * `unavailable`.
 */
export type Connect = () => Connection;

/** Keeps what `atoll login` was told, for this user only. */
export type SavedLogin = { save(connection: Connection): string; forget(): boolean };
