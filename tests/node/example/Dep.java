package org.example;

/** What the application needs of another jar. */
public final class Dep {
    private Dep() {}

    public static long twice(long number) {
        return 2 * number;
    }
}
