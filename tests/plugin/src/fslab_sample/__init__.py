"""A sample plug-in of fslab: one file per thing that it adds, as in fslab itself."""
