/** The clock as a dependency: rules take a time as an argument, handlers read it here, tests give their own. */

/** Answers the present as milliseconds since 1970. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
