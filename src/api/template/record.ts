/** A template: a name for builds. */
export type TemplateRecord = {
  templateId: string;
  teamId: string;
  kind: 'template' | 'snapshot';
  public: boolean;
  createdBy: string | null;
  createdAtUs: number;
  updatedAtUs: number;
  lastSpawnedAtUs: number | null;
  spawnCount: number;
  buildCount: number;
};

/** A name of a template; `namespace` is empty where it has none. */
export type TemplateName = { namespace: string; alias: string };

/** A ready build that was given a tag. */
export type TagAssignment = {
  tag: string;
  buildId: string;
  assignedAtUs: number;
  buildCreatedAtUs: number;
  buildFinishedAtUs: number | null;
};
