// Stand-ins.
