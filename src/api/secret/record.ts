/** A secret of a team. Its value is sealed with a key that is not in the database. */
export type SecretRecord = {
  secretId: string;
  teamId: string;
  name: string;
  currentVersion: number;
  sealedValue: string;
  metadata: Record<string, string>;
  createdAtUs: number;
  updatedAtUs: number;
};
