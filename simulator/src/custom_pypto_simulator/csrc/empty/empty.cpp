// The source of libraries that are linked against and never called.
